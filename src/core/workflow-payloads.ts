/**
 * What workflows are started with, told and answer. What `runPipeline` is started with is never read again later,
 * so that a replay is exact.
 */
import type { Failure } from '../contracts/primitives.ts';
import type { RunOutcome } from './run/machine.ts';
import type { RunPlan } from './run/plan.ts';
import type { RunSnapshot } from './run/snapshot.ts';

export interface RunPipelineInput {
  readonly engine_version: number;
  readonly run_id: string;
  readonly project_id: string;
  readonly pipeline: string;
  readonly version: string;
  readonly plan: RunPlan;
  /** Limit of the whole run; null = none but the backstop. */
  readonly timeout_ms: number | null;
  /** Silence after which a step is given to another worker. */
  readonly heartbeat_timeout_ms: number;
  /** Whether the server knows our search attributes. */
  readonly has_search_attributes: boolean;
  /** Where a person sees this run. */
  readonly run_url: string;
  /** Why its calls are inline or queued, for people. */
  readonly dispatch_reasons: readonly string[];
  /** Events after which the run goes on in a new history. Default 4,096. */
  readonly history_events?: number;
  /** How its row stood when it began. */
  readonly control?: ControlSignal;
  /** Where a run that continues as new was. */
  readonly snapshot?: WorkflowSnapshot;
}

/** What one history of a run hands to the next. */
export interface WorkflowSnapshot {
  readonly machine: RunSnapshot;
  /** Unix time in ms when the time of the run is over; null = no limit. */
  readonly deadline_ms: number | null;
  readonly control: ControlSignal;
  /** Units that were woken before they were known to wait. */
  readonly early_wakes: readonly string[];
  /** Versions of reviews that were notified and woke nobody yet. */
  readonly seen_versions: Readonly<Record<string, number>>;
  /** A step has waited or escalated: what that left open is closed at the end. */
  readonly has_waited: boolean;
}

/** Payload of the signal `control`: how the run's row stands. The highest version counts. */
export interface ControlSignal {
  readonly version: number;
  readonly paused: boolean;
  /** Version of the last change of the run's ceiling. */
  readonly budget_version: number;
}

/** Payload of the signal `woken`: what the unit waited for may be there. It may come more than once. */
export interface WokenSignal {
  readonly step_id: string;
  readonly item: number;
}

export interface RunPipelineResult {
  readonly run_id: string;
  readonly outcome: RunOutcome;
  readonly error: Failure | null;
}

// What `escalate` is started with, told and answers. The row of the escalation is the truth; the workflow only
// says when its next transition happens, so none of this holds a value of a run.

export type LadderStage = { readonly type: 'execute' | 'advise'; readonly level: number } | LadderEnd;

export type LadderEnd =
  | { readonly type: 'end'; readonly outcome: 'succeeded'; readonly skill_id?: string }
  /** A person skipped the step. */
  | { readonly type: 'end'; readonly outcome: 'skipped' }
  | { readonly type: 'end'; readonly outcome: 'failed' | 'cancelled'; readonly error: Failure }
  /** A person is asked. */
  | {
      readonly type: 'end';
      readonly outcome: 'review';
      readonly review_id: string;
      readonly due_at: string;
      readonly error: Failure;
    };

/** Where a ladder stands. */
export interface LadderPosition {
  readonly escalation_id: string;
  readonly transition: number;
  readonly command: LadderStage;
}

/** Where to go on: a place on the ladder, or a review that is over. */
export type LadderResumption =
  | Pick<LadderPosition, 'transition' | 'command'>
  | { readonly review_id: string };

export interface EscalateInput {
  readonly engine_version: number;
  readonly escalation_id: string;
  /** By itself it waits for its reviews; of a step, the run's workflow does. */
  readonly waits_for_reviews: boolean;
  readonly from: LadderResumption;
  /** Silence after which a transition is given to another worker. */
  readonly heartbeat_timeout_ms: number;
  /** Where a person sees it, or its run. */
  readonly url: string;
}

/** Payload of the signal `reviewed`, which may come more than once, and before anybody waits. */
export interface ReviewedSignal {
  readonly review_id: string;
  /** The review's version when it ended. */
  readonly version: number;
}

// What `scheduledRun` is started with, by Temporal's schedule, and what its activities ask and answer.

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

/**
 * The version of what the workflows do. A run keeps the one that it was started with, so it is raised when what they
 * ask of Temporal changes, and the older way stays behind a gate until the last run of it has ended: docs/engine-versions.md.
 */
export const engineVersion = 1;
