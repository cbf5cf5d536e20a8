import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { EmptyState, linkClass } from '../shared/parts.tsx';

export function NotFound(): ReactElement {
  return (
    <EmptyState title="There is no such page">
      The address leads nowhere.{' '}
      <Link to="/" className={linkClass}>
        Home
      </Link>{' '}
      shows what waits and what runs; Ctrl-K finds the rest.
    </EmptyState>
  );
}
