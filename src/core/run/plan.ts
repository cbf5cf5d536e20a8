/**
 * What the run machine needs of a definition: names, edges and rules, no values. It is the workflow's input, so it is
 * small, plain JSON and never changes for a run. What is absent is the default.
 */
import type { RunIf } from '../../contracts/pipeline.ts';

export interface PlannedStep {
  readonly id: string;
  /** For people: the capability, or what else the step is. */
  readonly capability: string;
  /** Indexes of the steps that must be done before it. */
  readonly dependencies: readonly number[];
  /** Limit of the step with all its attempts. */
  readonly total_timeout_ms: number;
  /** A failure that a corrected input may cure starts a ladder instead of ending the step. */
  readonly escalates?: true;
  /** Default all_succeeded. */
  readonly run_if?: RunIf;
  /** Whether it happens, or how often, is worked out of values once its dependencies are done. */
  readonly decides?: true;
  /** It happens once per item. */
  readonly each?: { readonly max_parallel?: number; readonly tolerate?: number };
  /** The run goes on when it fails. */
  readonly continues?: true;
  /** It may be executed without a queue in between. */
  readonly inline?: true;
}

export interface RunPlan {
  readonly steps: readonly PlannedStep[];
  /** Steps and items that may run at once. */
  readonly max_in_flight: number;
  /** Indexes of steps whose results were taken from another run, ascending. */
  readonly reused?: readonly number[];
}
