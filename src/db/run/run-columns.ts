/**
 * The columns of a run in one list each: those that a writer sets, and those that readers see. Columns about the runs
 * below it, and about its waits, are computed in run-list.ts.
 */
import type { DecidedRoute } from '@capstan/core/contracts/decision';
import type { Failure, Priority } from '@capstan/core/contracts/primitives';
import type { RunFollows, RunQueue, RunState, StalledRun } from '@capstan/core/contracts/run';
import type { Awaiting } from '@capstan/core/contracts/run-step';

/**
 * The origin of a run that no request started: a step of another run, or a schedule. Each key starts one run at most.
 */
export interface RunOrigin {
  readonly parent_run_id?: string;
  readonly parent_step_id?: string;
  readonly parent_item?: number;
  readonly parent_revision?: number;
  readonly schedule_id?: string;
  /** The key or person whose budgets its calls are charged to. Default: the one that requested the run. */
  readonly key_id?: string;
  /** RFC 3339 */
  readonly scheduled_at?: string;
  /** The day of that moment in the zone of the schedule at that time, YYYY-MM-DD. */
  readonly scheduled_date?: string;
  /** RFC 3339: when the start before was planned. */
  readonly period_start?: string;
  /** The backfill that started it. */
  readonly backfill_id?: string;
  /** Notified when the run has ended. */
  readonly parent_workflow_id?: string;
  /** It is an item of a step with `for_each`; runs below it need not know. */
  readonly is_below_items?: true;
  /** Number of runs above it. */
  readonly depth?: number;
}

export interface NewRun extends RunOrigin {
  readonly run_id: string;
  readonly project_id: string;
  readonly job_id: string;
  readonly pipeline: string;
  readonly version: string;
  readonly digest: string;
  readonly priority: Priority;
  readonly budget_ceiling_usd: number | null;
  readonly labels: Readonly<Record<string, string>>;
  /** Digest of the spec against which it was checked, by capability. */
  readonly specs?: Readonly<Record<string, string>>;
  /** Dispatch, by route, of the steps that leave it open; absent if there are none. */
  readonly dispatch?: readonly DecidedRoute[];
  readonly rerun_of?: string;
  /** Id of the key or the person that requested it; stored only in its log. */
  readonly started_by?: string;
  /** Runs with the same key take turns. */
  readonly concurrency_key?: string;
  readonly concurrency_limit?: number;
  /** It does not wait for its turn. */
  readonly is_admitted?: boolean;
  /** The versions of its child runs that it takes from the run that it repeats, by reference. */
  readonly versions?: Readonly<Record<string, string>>;
  /** Its parent in a trace, as `formatPlace` writes it. Absent: it starts a trace. */
  readonly trace_parent?: string;
}

/** Rows of new runs are passed as JSON; only the columns of this list are read from it. */
const given: Record<Exclude<keyof NewRun, 'is_admitted' | 'is_below_items' | 'started_by'>, true> = {
  run_id: true,
  project_id: true,
  job_id: true,
  pipeline: true,
  version: true,
  digest: true,
  priority: true,
  budget_ceiling_usd: true,
  labels: true,
  specs: true,
  dispatch: true,
  rerun_of: true,
  depth: true,
  parent_run_id: true,
  parent_step_id: true,
  parent_item: true,
  parent_revision: true,
  parent_workflow_id: true,
  schedule_id: true,
  key_id: true,
  scheduled_at: true,
  scheduled_date: true,
  period_start: true,
  backfill_id: true,
  concurrency_key: true,
  concurrency_limit: true,
  versions: true,
  trace_parent: true,
};
export const newRunColumns: readonly string[] = Object.keys(given);

export interface RunStandingColumns {
  readonly awaiting: readonly Awaiting[];
  readonly follows: RunFollows | null;
}

/** The columns of a run's own row. */
interface ShownColumns {
  readonly run_id: string;
  readonly project_id: string;
  readonly job_id: string;
  readonly pipeline: string;
  readonly version: string;
  readonly state: RunState;
  readonly priority: Priority;
  readonly budget_ceiling_usd: string | null;
  readonly labels: Record<string, string>;
  readonly error: Failure | null;
  readonly rerun_of: string | null;
  readonly parent_run_id: string | null;
  readonly parent_step_id: string | null;
  readonly parent_item: number | null;
  readonly schedule_id: string | null;
  readonly scheduled_at: Date | null;
  readonly created_at: Date;
  readonly started_at: Date | null;
  readonly finished_at: Date | null;
  readonly stalled: StalledRun | null;
}

const shown: Record<keyof ShownColumns, true> = {
  run_id: true,
  project_id: true,
  job_id: true,
  pipeline: true,
  version: true,
  state: true,
  priority: true,
  budget_ceiling_usd: true,
  labels: true,
  error: true,
  rerun_of: true,
  parent_run_id: true,
  parent_step_id: true,
  parent_item: true,
  schedule_id: true,
  scheduled_at: true,
  created_at: true,
  started_at: true,
  finished_at: true,
  stalled: true,
};
export const shownRunColumns: readonly string[] = Object.keys(shown);

export interface RunRow extends ShownColumns, RunStandingColumns {
  readonly queue: RunQueue | null;
  /** The newest run that repeats it. */
  readonly superseded_by: string | null;
  /** bigint as text; includes all runs below it */
  readonly cost_nano: string;
  readonly reserved_nano: string;
}

/** A new run as its row would read now, without calls and cost. */
export function rowOfNew(run: NewRun): RunRow {
  return {
    ...run,
    budget_ceiling_usd: run.budget_ceiling_usd?.toString() ?? null,
    rerun_of: run.rerun_of ?? null,
    superseded_by: null,
    parent_run_id: run.parent_run_id ?? null,
    parent_step_id: run.parent_step_id ?? null,
    parent_item: run.parent_item ?? null,
    schedule_id: run.schedule_id ?? null,
    scheduled_at: run.scheduled_at === undefined ? null : new Date(run.scheduled_at),
    error: null,
    state: 'queued',
    created_at: new Date(),
    started_at: null,
    finished_at: null,
    cost_nano: '0',
    reserved_nano: '0',
    awaiting: [],
    follows: null,
    queue: null,
    stalled: null,
  };
}
