/** What `runPipeline` is started with. Nothing is read again later, so that a replay is exact. */
import type { Failure } from '../../contracts/primitives.ts';
import type { RunOutcome } from '../run/machine.ts';
import type { RunPlan } from '../run/plan.ts';
import type { RunSnapshot } from '../run/snapshot.ts';

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
