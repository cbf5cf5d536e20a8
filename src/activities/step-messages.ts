/** What a workflow and the activities that execute steps tell each other. It travels through histories. */
import type { Json } from '../contracts/primitives.ts';
import type { Awaiting } from '../contracts/run.ts';
import type { ClosedRun } from '../services/runs/close-run.ts';
import type { InlineUnit } from '../services/steps/execute-inline.ts';
import type { StepRequest } from '../services/steps/execute-step.ts';

export type StepActivityRequest = StepRequest;
export type InlineBatchUnit = InlineUnit;

export interface StepActivityDone {
  readonly endpoint: string | null;
  readonly cost_usd: number;
  readonly duration_ms: number;
  /** Absent when it is larger than 4 KiB. */
  readonly output?: Json;
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

/**
 * What became of a unit of a batch. left: it has not begun. again: it has, and has not succeeded yet; how it ends is
 * learnt by asking for it from the queue: the rows say it, or the call that goes on.
 */
export type InlineEnd = StepActivityDone | 'left' | 'again';

export interface InlineBatchEnd {
  /**
   * By the names of the units (`nameUnit`), so that a person who reads the history sees what is whose. In the order that
   * was asked for: JSON keeps it, as no name is a number.
   */
  readonly ends: Readonly<Record<string, InlineEnd>>;
  readonly took_ms: number;
  /** The run was closed with them. */
  readonly closed?: ClosedRun;
}
