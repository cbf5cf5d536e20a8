/**
 * Names of workflows, which people see in Temporal's Web UI first of all. Ids of runs and escalations are unique by
 * themselves; what stands before them says what it is, and a prefix of it finds all of a kind.
 */

export interface RunRef {
  readonly pipeline: string;
  readonly run_id: string;
}

/** `trailer/run_01…` */
export function runWorkflowId({ pipeline, run_id }: RunRef): string {
  return `${pipeline}/${run_id}`;
}

export interface LadderRef {
  readonly step_id: string;
  /** 0: the step has no items. */
  readonly item: number;
  /** From 1; another one begins after each decision of a person. */
  readonly round: number;
}

/** `trailer/run_01…/cut/ladder`, `…/cut/3/ladder` of an item, `…/ladder/r2` after a decision. */
export function ladderWorkflowId(run: RunRef, { step_id, item, round }: LadderRef): string {
  const unit = item === 0 ? step_id : `${step_id}/${item}`;
  return `${runWorkflowId(run)}/${unit}/ladder${round === 1 ? '' : `/r${round}`}`;
}

/** The workflow id of a ladder by itself: `ladder/esc_01…` */
export function aloneWorkflowId(escalationId: string): string {
  return `ladder/${escalationId}`;
}

/** The workflow id of a schedule and of its starts, to which Temporal adds their time: `trailer/sch_01…`. */
export function scheduleWorkflowId(pipeline: string, scheduleId: string): string {
  return `${pipeline}/${scheduleId}`;
}
