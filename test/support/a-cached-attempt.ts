import type { Attempt } from '@capstan/core/contracts/run-step';

/** An attempt that has used a cached result. */
export function aCachedAttempt(
  origin: Pick<NonNullable<Attempt['cached_from']>, 'run_id' | 'step_id'>,
): Attempt {
  return {
    attempt_id: 'att_2',
    endpoint: 'http://x',
    state: 'cached',
    ambiguity: null,
    started_at: '2026-01-01T00:00:00.000Z',
    duration_ms: 2,
    cost_usd: 0,
    certainty: 'exact',
    cached_from: { ...origin, item: 3, attempt_id: 'att_1', saved_usd: 0.25 },
    decision: {
      decision_id: 'dec_2',
      chosen: null,
      reason: 'cached',
      candidates: [],
      reserved_usd: 0,
      settled_usd: 0,
    },
  };
}
