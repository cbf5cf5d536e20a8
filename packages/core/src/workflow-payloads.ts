/**
 * Inputs, signals and results of workflows. The input of `runPipeline` is never read again later, so that a replay is
 * exact.
 */

import type { SuccessfulAttempt } from './call/types.ts';
import type { Failure, Json } from './contracts/primitives.ts';
import type { ParentUnit } from './contracts/run-control.ts';
import type { Awaiting } from './contracts/run-step.ts';
import type { RunOutcome } from './run/machine.ts';
import type { RunPlan } from './run/plan.ts';
import type { RunSnapshot } from './run/snapshot.ts';
import type { TimeLeft } from './time-limit.ts';

export interface RunPipelineInput {
  readonly engine_version: number;
  readonly run_id: string;
  readonly project_id: string;
  readonly pipeline: string;
  readonly version: string;
  readonly plan: RunPlan;
  /** Limit of the whole run; null = only the backstop. */
  readonly timeout_ms: number | null;
  /** Time without heartbeats after which another worker gets a step. */
  readonly heartbeat_timeout_ms: number;
  /** Whether the server has Capstan's search attributes. */
  readonly has_search_attributes: boolean;
  /** URL of this run for people. */
  readonly run_url: string;
  /** Why the run's calls are inline or queued, for people. */
  readonly dispatch_reasons: readonly string[];
  /** Events after which the run continues in a new history. Default 4,096. */
  readonly history_events?: number;
  /** The state of its row at the start. */
  readonly control?: ControlSignal;
  /** The unit that has started it, which it signals when it begins to rest (M13). Absent: no `for_each` is above it. */
  readonly parent?: ParentUnit;
  /** The position of a run that continues as new. */
  readonly snapshot?: WorkflowSnapshot;
}

/** The state that one history of a run passes to the next. */
export interface WorkflowSnapshot extends TimeLeft {
  readonly machine: RunSnapshot;
  readonly control: ControlSignal;
  /** Units with a wake that arrived before their wait. */
  readonly early_wakes: readonly string[];
  /** Versions of reviews that were notified but have woken no unit yet. */
  readonly seen_versions: Readonly<Record<string, number>>;
  /** A step has waited or escalated; anything it left open is closed at the end. */
  readonly has_waited: boolean;
}

/** Payload of the signal `control`: the state of the run's row. The highest version counts. */
export interface ControlSignal {
  readonly version: number;
  readonly paused: boolean;
  /** Version of the last change of the run's ceiling. */
  readonly budget_version: number;
  /** How long the run was paused in earlier pauses. Absent: it was not. */
  readonly paused_ms?: number;
}

/** How long after the step's time Temporal gives up an activity whose end no worker has reported. */
export const reportMs = 60_000;

/** Payload of the signal `woken`: the unit's wait may be satisfied. The signal may repeat. */
export interface WokenSignal {
  readonly step_id: string;
  readonly item: number;
}

/** Payload of the signal `rested`, from a child run to its parent: it waits for people alone, or no longer does (M13). */
export interface RestedSignal extends WokenSignal {
  /** Of the child run. */
  readonly run_id: string;
  readonly rests: boolean;
}

export interface RunPipelineResult {
  readonly run_id: string;
  readonly outcome: RunOutcome;
  readonly error: Failure | null;
}

// Input, signals and results of `escalate`. The escalation's row is the truth. The workflow only schedules the next
// transition, so none of this contains a value of a run.

export type LadderStage = { readonly type: 'execute' | 'advise'; readonly level: number } | LadderEnd;

export type LadderEnd =
  | { readonly type: 'end'; readonly outcome: 'succeeded'; readonly skill_id?: string }
  /** A person skipped the step. */
  | { readonly type: 'end'; readonly outcome: 'skipped' }
  | { readonly type: 'end'; readonly outcome: 'failed' | 'cancelled'; readonly error: Failure }
  /** A review was opened. */
  | {
      readonly type: 'end';
      readonly outcome: 'review';
      readonly review_id: string;
      readonly due_at: string;
      readonly error: Failure;
    }
  /** It continues from there after the pause of its step's run, or when its call in line for a slot is called. */
  | ({ readonly type: 'end'; readonly outcome: 'held'; readonly from: LadderPoint } & HeldInLine);

interface HeldInLine {
  /** Its corrected call waits in line for a free slot, until this time at the latest; null = without limit. */
  readonly in_line?: { readonly until: number | null };
}

export type LadderPoint = Pick<LadderPosition, 'transition' | 'command'>;

/** The position of a ladder. */
export interface LadderPosition extends HeldInLine {
  readonly escalation_id: string;
  readonly transition: number;
  readonly command: LadderStage;
  /** The run of its step is paused: the transition was not made. */
  readonly is_held?: true;
}

/** The point to resume from: a position on the ladder, or a finished review. */
export type LadderResumption = LadderPoint | { readonly review_id: string };

export interface EscalateInput {
  readonly engine_version: number;
  readonly escalation_id: string;
  /** A ladder outside a run waits for its reviews itself; for a step, the run's workflow waits. */
  readonly waits_for_reviews: boolean;
  readonly from: LadderResumption;
  /** Time without heartbeats after which another worker gets a transition. */
  readonly heartbeat_timeout_ms: number;
  /** URL of the escalation, or of its run, for people. */
  readonly url: string;
}

/** Payload of the signal `reviewed`, which may repeat, and may arrive before the wait. */
export interface ReviewedSignal {
  readonly review_id: string;
  /** The review's version when it ended. */
  readonly version: number;
}

// The input of `scheduledRun` from Temporal's schedule, and the requests and results of its activities.

export interface ScheduledRunInput {
  readonly project_id: string;
  readonly schedule_id: string;
}

export interface ScheduledStart {
  readonly schedule_id: string;
  /** The scheduled moment, RFC 3339: one run for each. */
  readonly scheduled_at: string;
  /** The workflow that is notified at the end of the run. */
  readonly workflow_id: string;
}

/**
 * refused: a retry cannot change it. skipped: the overlap policy gives it no run. has_ended: the run has ended, or
 * another start of that time waits for its end, so no notification follows.
 */
export type ScheduledSubmission =
  | { readonly run_id: string; readonly has_ended?: true }
  | { readonly skipped: string }
  | { readonly refused: Failure };

export interface CancelRunRequest {
  readonly project_id: string;
  readonly run_id: string;
}

/**
 * The version of the workflows' behaviour. A run keeps the version it was started with. The version is raised when the
 * commands to Temporal change, and the old behaviour stays behind a gate until its last run has ended:
 * docs/engine-versions.md.
 */
export const engineVersion = 1;

/** `delay_ms`: nothing was done yet; repeat the transition after it. */
export interface Advanced extends LadderPosition {
  readonly delay_ms?: number;
}

/** Its result is in the database already. */
export type StepExecution =
  | { readonly kind: 'succeeded'; readonly output: Json; readonly attempt: SuccessfulAttempt | null }
  | { readonly kind: 'failed' | 'unknown'; readonly error: Failure }
  | { readonly kind: 'retry'; readonly error: Failure; readonly delayMs: number }
  /** By a person. */
  | { readonly kind: 'skipped' }
  | { readonly kind: 'cancelled' };

/** The review, the run or the event that the workflow waits for. */
export interface WaitReference {
  readonly review_id?: string;
  readonly run_id?: string;
  /** The name of an event. */
  readonly event?: string;
}

export interface WaitingStep {
  readonly kind: 'waiting';
  readonly awaiting: Awaiting;
  /** The latest end of the wait; null = it ends only by a signal. */
  readonly until: Date | null;
  readonly ref: WaitReference | null;
  /** What is left of the step's total timeout, which does not run during the wait, ms. Absent: all of it. */
  readonly leftMs?: number;
  /**
   * How often the step's call was made before the wait; uncounted retries are spaced by it. Absent: the count begins
   * again.
   */
  readonly rounds?: number;
}

export interface EscalatedExecution {
  readonly kind: 'escalated';
  readonly error: Failure;
  readonly place: LadderPosition;
}

export type StepEnd = StepExecution | EscalatedExecution | WaitingStep;
