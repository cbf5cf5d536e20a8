/** What a workflow and the activity `executeStep` tell each other. It travels through histories. */
import type { Json } from '../contracts/primitives.ts';
import type { Awaiting } from '../contracts/run.ts';
import type { StepRequest } from '../services/steps/execute-step.ts';

/** An inline step may bring along those that follow it. */
export interface StepActivityRequest extends StepRequest {
  /** Executed in this order, as long as each succeeds and little time has passed. */
  readonly followers?: readonly Follower[];
}

export interface Follower extends Pick<StepRequest, 'step_id' | 'escalates'> {
  /** Absent where the activity itself ends before. */
  readonly total_timeout_ms?: number;
}

export interface StepActivityDone {
  readonly endpoint: string | null;
  readonly cost_usd: number;
  readonly duration_ms: number;
  /** Absent when it is larger than 4 KiB. */
  readonly output?: Json;
  /** Those that were brought along and executed. */
  readonly followed?: readonly FollowedStep[];
}

export interface FollowedStep {
  readonly step_id: string;
  /** Null: it did not succeed at once. How it ends is learnt by asking for it once more: the rows say it. */
  readonly done: StepActivityDone | null;
}

/** A step that takes no room until somebody says that its wait is over, or `until` (RFC 3339) has come. */
export interface StepActivityWaiting {
  readonly awaiting: Awaiting;
  readonly until: string | null;
  /** What the wait is about. */
  readonly ref?: { readonly review_id?: string; readonly run_id?: string };
}

export type StepActivityResult =
  | StepActivityDone
  | { readonly waiting: StepActivityWaiting }
  /** A person skipped it. */
  | { readonly skipped: true };
