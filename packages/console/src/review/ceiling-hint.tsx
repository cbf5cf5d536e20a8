import type { Review } from '@capstan/core/contracts/review';
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { runQuery } from '../api/runs.ts';
import { Button } from '../shared/parts.tsx';
import { adviseCeiling, type CeilingAdvice, exactUsd } from './ceiling.ts';

/** Null for a review of something else, and of a budget without figures. */
export function useCeilingAdvice(review: Review | undefined): CeilingAdvice | null {
  const { run_id, step_id } = review?.kind === 'budget' ? (review.payload.details ?? {}) : {};
  const waits = typeof run_id === 'string' && typeof step_id === 'string';
  const run = useQuery({ ...runQuery(waits ? run_id : ''), enabled: waits }).data;
  return review === undefined ? null : adviseCeiling(review, run);
}

interface CeilingHintProps {
  readonly advice: CeilingAdvice | null;
  readonly onTake: (usd: string) => void;
}

/** The minimum ceiling, and the sum for all remaining work, as buttons. */
export function CeilingHint({ advice, onTake }: CeilingHintProps): ReactElement | null {
  if (advice === null) return null;
  const { leastUsd, enoughUsd, itemsLeft } = advice;
  return (
    <p className="flex flex-wrap items-center gap-2 text-sm text-muted">
      Needs at least {exactUsd(leastUsd)} USD
      {itemsLeft === 1 ? '.' : `; for all ${itemsLeft} items that are left ${exactUsd(enoughUsd)} USD.`}
      <Button onClick={() => onTake(exactUsd(enoughUsd))}>Use {exactUsd(enoughUsd)}</Button>
    </p>
  );
}
