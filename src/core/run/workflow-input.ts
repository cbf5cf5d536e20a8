/** What `runPipeline` is started with. Nothing is read again later, so that a replay is exact. */
import type { Failure } from '../../contracts/primitives.ts';
import type { RunOutcome } from './machine.ts';
import type { RunPlan } from './plan.ts';

/** The newest: raised when the workflow's behaviour changes; runs keep the behaviour they started with. */
export const engineVersion = 2;

/** From here on a step that fails for real escalates. */
export const escalatingVersion = 2;

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
}

export interface RunPipelineResult {
  readonly run_id: string;
  readonly outcome: RunOutcome;
  readonly error: Failure | null;
}
