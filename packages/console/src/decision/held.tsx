import type { Decision } from '@capstan/core/contracts/decision';
import { describeGrowth } from '@capstan/core/money/held-words';
import type { ReactElement } from 'react';
import { Moment } from '../shared/ago.tsx';
import { formatUsd } from '../shared/format.ts';

interface HeldProps {
  /** What was reserved at the admission. */
  readonly usd: number;
  readonly held: Pick<Decision, 'held_usd' | 'pieces'>;
}

/** What a call reserved, and, if its reservation grows, what it took piece by piece. */
export function Held({ usd, held }: HeldProps): ReactElement {
  const growth = describeGrowth(held);
  if (growth === null) return <>{formatUsd(usd)}</>;
  return (
    <details>
      <summary className="cursor-pointer">
        {formatUsd(usd)}, {growth}
      </summary>
      <ul aria-label="Pieces" className="figure text-xs text-muted">
        {held.pieces?.map(({ at, usd: piece, pieces: count = 1 }, index) => (
          <li key={`${index} ${at}`}>
            +{formatUsd(piece)} {count === 1 ? '' : `in ${count} pieces, from `}
            <Moment at={at} />
          </li>
        ))}
      </ul>
    </details>
  );
}
