import type { Review } from '@capstan/core/contracts/review';
import type { ReactElement } from 'react';
import { Panel } from '../../shared/parts.tsx';

/** All attempts and advice before the review. */
export function Tried({ review }: { readonly review: Review }): ReactElement | null {
  const { history = [], advice = [] } = review.payload;
  if (history.length + advice.length === 0) return null;
  return (
    <Panel title="Tried so far" className="mt-4">
      <ol className="flex flex-col gap-2 text-sm">
        {history.map(({ level, label, error }, index) => (
          <li key={`h${index}`} className="break-words">
            <span className="font-medium">{label}</span>{' '}
            <span className="text-xs text-muted">level {level}</span>
            <p className="text-muted">{error}</p>
          </li>
        ))}
        {advice.map(({ from_level, label, instructions }, index) => (
          <li key={`a${index}`} className="break-words">
            <span className="font-medium text-person">{label} advised</span>{' '}
            <span className="text-xs text-muted">level {from_level}</span>
            <p className="text-muted">{instructions}</p>
          </li>
        ))}
      </ol>
    </Panel>
  );
}
