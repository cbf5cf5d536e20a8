/**
 * What the run machine needs of a definition: names and edges, no values. It is the workflow's input, so it is
 * small, plain JSON and never changes for a run.
 */
export interface PlannedStep {
  readonly id: string;
  readonly capability: string;
  /** Indexes of the steps that must succeed before it. */
  readonly dependencies: readonly number[];
  /** Limit of the step with all its attempts and waits. */
  readonly total_timeout_ms: number;
  /** A failure that a corrected input may cure starts a ladder instead of ending the step. */
  readonly escalates?: true;
}

export interface RunPlan {
  readonly steps: readonly PlannedStep[];
  /** Steps that may run at once. */
  readonly max_in_flight: number;
}
