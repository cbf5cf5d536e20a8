/** Waiting steps in the state in which a worker leaves them. */
import type { Db } from '../../src/db/connect.ts';
import { readStep } from '../../src/db/step/step.ts';
import { keepWaiting } from '../../src/db/step/step-progress.ts';
import { openReview } from '../../src/use-cases/reviews/opening.ts';

interface Place {
  readonly run_id: string;
  readonly project_id: string;
}

/** For an exhausted budget: the step waits, and its review is open. @returns the review's id */
export async function waitForBudget(
  db: Db,
  { run_id, project_id }: Place,
  {
    step_id,
    scope,
    limit_usd = 1,
    item = 0,
  }: { step_id: string; scope: string; limit_usd?: number; item?: number },
): Promise<string> {
  const { review_id } = await openReview(db, {
    project_id,
    kind: 'budget',
    subject: scope,
    reason: 'no money',
    due_in_ms: 60_000,
    ...(scope.startsWith('run:') ? { run_id } : {}),
    payload: { details: { scope, limit_usd, spent_usd: limit_usd, reserved_usd: 0, minimum_usd: 0.5 } },
  });
  await keepWaiting(
    db,
    { run_id, step_id, item, revision: 0 },
    {
      awaiting: 'budget',
      until: null,
      for_ms: null,
      begins: false,
      budget_scope: scope,
    },
  );
  return review_id;
}

export async function waitForCapability(
  db: Db,
  { run_id }: Place,
  step_id: string,
  capability: string,
): Promise<void> {
  await keepWaiting(
    db,
    { run_id, step_id, item: 0, revision: 0 },
    {
      awaiting: 'capability',
      capability,
      until: null,
      for_ms: 60_000,
      begins: false,
    },
  );
}

export async function isWoken(db: Db, runId: string, stepId: string): Promise<boolean> {
  const row = await db('step').where({ run_id: runId, step_id: stepId }).first('wake_requested_at');
  return row?.wake_requested_at != null;
}

export async function stateOf(db: Db, run_id: string, step_id: string) {
  return (await readStep(db, { run_id, step_id, item: 0 }))?.state;
}
