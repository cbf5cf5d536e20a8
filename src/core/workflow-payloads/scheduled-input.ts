/** What `scheduledRun` is started with, by Temporal's schedule, and what its activities ask and answer. */
import type { Failure } from '../../contracts/primitives.ts';

export interface ScheduledRunInput {
  readonly project_id: string;
  readonly schedule_id: string;
}

export interface ScheduledStart {
  readonly schedule_id: string;
  /** The moment that the calendar meant, RFC 3339: one run for each. */
  readonly scheduled_at: string;
  /** That is told when the run has ended. */
  readonly workflow_id: string;
}

/** refused: no repetition would change it. has_ended, or another start of that time waits for its end: nobody will tell of it. */
export type ScheduledSubmission =
  | { readonly run_id: string; readonly has_ended?: true }
  | { readonly refused: Failure };

export interface CancelRunRequest {
  readonly project_id: string;
  readonly run_id: string;
}
