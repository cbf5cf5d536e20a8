/** Writes a step's end that was decided outside an attempt. */
import type { Failure } from '../../contracts/primitives.ts';
import type { Db } from '../../db/connect.ts';
import { endStep } from '../../db/step.ts';
import type { StepRequest } from './execute-step.ts';

export interface StepEndRequest extends StepRequest {
  readonly state: 'failed' | 'cancelled';
  readonly error: Failure;
}

export type RecordStepEnd = (request: StepEndRequest) => Promise<void>;

export const createRecordStepEnd =
  (db: Db): RecordStepEnd =>
  ({ run_id, step_id, revision, state, error }) =>
    endStep(db, { run_id, step_id, revision, item: 0 }, state, error);
