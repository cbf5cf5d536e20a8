import { Link, useLocation } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { EmptyState, linkClass } from '../shared/parts.tsx';
import { useTitle } from '../shared/title.ts';

interface SoughtKind {
  readonly path: '/runs' | '/reviews' | '/pipelines' | '/capabilities' | '/skills';
  readonly word: string;
  readonly list: string;
}

const kinds: readonly SoughtKind[] = [
  { path: '/runs', word: 'Run', list: 'All runs' },
  { path: '/reviews', word: 'Review', list: 'All reviews' },
  { path: '/pipelines', word: 'Pipeline', list: 'All pipelines' },
  { path: '/capabilities', word: 'Capability', list: 'All capabilities' },
  { path: '/skills', word: 'Skill', list: 'All skills' },
];

/** Names the missing address, and where to go instead. */
export function NotFound(): ReactElement {
  const { pathname } = useLocation();
  const kind = kinds.find(({ path }) => pathname.startsWith(`${path}/`));
  const [, , id = ''] = pathname.split('/');
  const title = kind === undefined ? 'Page not found' : `${kind.word} not found`;
  useTitle(title);
  return (
    <EmptyState title={title}>
      <p className="break-words">
        {kind === undefined ? (
          <>
            There is no page at <code className="font-mono">{pathname}</code>.
          </>
        ) : (
          <>
            There is no {kind.word.toLowerCase()} <code className="font-mono">{decodeURIComponent(id)}</code>,
            or you do not have access to it.
          </>
        )}
      </p>
      <p className="mt-3 flex justify-center gap-4">
        {kind === undefined ? null : (
          <Link to={kind.path} className={linkClass}>
            {kind.list}
          </Link>
        )}
        <Link to="/" className={linkClass}>
          Home
        </Link>
      </p>
    </EmptyState>
  );
}
