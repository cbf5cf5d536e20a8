/** Writes ends of steps that the workflow decided: what no attempt, ladder or wait has written. */
import type { Db } from '../../db/connect.ts';
import { recordChanges, type StepChange } from '../../db/step/step-progress.ts';

export interface ProgressReport {
  readonly run_id: string;
  readonly changes: readonly StepChange[];
}

export type RecordProgress = (report: ProgressReport) => Promise<void>;

export function createRecordProgress(db: Db): RecordProgress {
  return async ({ run_id, changes }) => {
    if (changes.length > 0) await recordChanges(db, run_id, changes);
  };
}
