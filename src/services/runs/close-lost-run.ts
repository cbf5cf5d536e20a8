/**
 * Closes a run whose workflow will not: it was ended from outside, or never started. What it left open ends with it;
 * the runs that its steps have started are asked to cancel.
 */
import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import type { Failure } from '../../contracts/primitives.ts';
import type { CancelRequest } from '../../contracts/run.ts';
import type { Db } from '../../db/connect.ts';
import { cancelRunEscalations } from '../../db/escalation/escalation.ts';
import { cancelRunReviews } from '../../db/review/review-delivery.ts';
import { finishRun } from '../../db/run/run.ts';
import { requestCancelOfChildren } from '../../db/run/run-control.ts';

export interface LostRun {
  readonly run_id: string;
  readonly definition: PipelineDefinition;
}

export interface LostEnd {
  readonly state: 'failed' | 'cancelled';
  readonly error: Failure;
  /** How the runs below it are cancelled. */
  readonly mode: CancelRequest['mode'];
}

/** A run that has ended stays as it is. */
export function closeLostRun(
  db: Db,
  { run_id, definition }: LostRun,
  { state, error, mode }: LostEnd,
): Promise<void> {
  return db.transaction(async (trx) => {
    const step_ids = definition.steps.map(({ id }) => id);
    await finishRun(trx, { run_id, state, output: undefined, error, step_ids });
    await cancelRunReviews(trx, run_id);
    await cancelRunEscalations(trx, run_id);
    await requestCancelOfChildren(trx, run_id, { reason: `its parent ${run_id} has ended`, mode });
  });
}
