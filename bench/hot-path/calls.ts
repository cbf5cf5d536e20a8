/** Calls to be claimed and settled: their budgets exist, and their instances have room for all of them. */
import type { AttemptEnd, Claim } from '../../src/db/attempt/attempt.ts';
import type { Db } from '../../src/db/connect.ts';
import { aClaim, anEnd, anInstance, aProject, aRun } from '../../test/support/factories.ts';

export const kinds = ['free', 'paid', 'step'] as const;
/** A direct call of a free instance; of one with a price, which three budgets hold; a step's call of a free instance. */
export type Kind = (typeof kinds)[number];

export interface PreparedCall {
  readonly claim: Claim;
  readonly end: AttemptEnd;
}

export type Make = (kind: Kind, count: number) => Promise<readonly PreparedCall[]>;

const price = 100_000n;

/** A decision as a fleet of two instances gives it. */
const decision = {
  decision_id: 'dec_01920000-0000-7000-8000-000000000000',
  chosen: 'http://127.0.0.1:8100',
  reason: 'free, local and idle',
  candidates: ['http://127.0.0.1:8100', 'http://127.0.0.1:8101'].map((endpoint) => ({
    endpoint,
    verdict: 'considered',
    score: 0.000_123,
    wait_ms: 0,
    reason: 'tier 0, free, 0 of 64 slots taken, about 12 ms',
  })),
  reserved_usd: 0,
  settled_usd: null,
} as unknown as Claim['decision'];

export async function prepareCalls(db: Db): Promise<Make> {
  const { project_id } = await aProject(db, { daily_limit_nano: 1_000_000_000_000_000n });
  const wide = { owner_project: project_id, max_concurrency: 1_000_000 };
  const free = await anInstance(db, wide);
  const paid = await anInstance(db, { ...wide, cost_type: 'per_call', rate_usd: 0.000_1 });
  return async (kind, count) => {
    const run = kind === 'step' ? await aRun(db, { project_id }) : { run_id: '', project_id };
    return Array.from({ length: count }, (_, n) => {
      const made = aClaim(run, kind === 'paid' ? paid : free, { step_id: `s${n}`, decision });
      const direct = { step: null, run_id: null, is_first: true, key: made.attempt_id };
      const claim: Claim = {
        ...made,
        ...(kind === 'step' ? {} : direct),
        reserved_nano: kind === 'paid' ? price : 0n,
        inputs: { seed: 1, instances: [free.instance_id, paid.instance_id] },
      };
      const end = anEnd(claim, {
        settled_nano: claim.reserved_nano,
        output: kind === 'step' ? { text: 'x'.repeat(200) } : undefined,
        duration_ms: 12.5,
      });
      return { claim, end };
    });
  };
}
