/** Runs of a project about which something was logged between two horizons, and how they stand. */
import type { Failure } from '../../contracts/primitives.ts';
import type { RunState } from '../../contracts/run.ts';
import type { Db } from '../connect.ts';
import {
  awaitingOfRun,
  followsOfRun,
  type RunStandingColumns,
  runsWithin,
  type StepCountColumns,
  stepsOfRun,
} from './run-standing.ts';

/** From one horizon to another. */
export interface LogSpan {
  readonly from: string;
  readonly to: string;
}

/**
 * Those under way, and those that ended after `endedSince`; with each the runs above it, since what a run costs and
 * waits for is told with all that is below it.
 */
export async function listChangedRuns(
  db: Db,
  projectId: string,
  { from, to, endedSince, limit }: LogSpan & { readonly endedSince: Date; readonly limit: number },
): Promise<readonly string[]> {
  const { rows } = await db.raw<{ rows: { run_id: string }[] }>(
    `with changed as (
       select r.run_id from (
         select run_id from run where project_id = :projectId and finished_at is null
         union all
         select run_id from run where project_id = :projectId and finished_at > :endedSince
       ) r where exists (
         select from event e where e.run_id = r.run_id and e.xid >= :from::text::xid8 and e.xid < :to::text::xid8)
       limit :limit
     )
     select run_id from changed
     union
     select unnest(line.ancestors) from changed c
       cross join lateral (select ancestors from run r where r.run_id = c.run_id offset 0) line`,
    { projectId, from, to, endedSince, limit },
  );
  return rows.map(({ run_id }) => run_id);
}

export interface RunStandingRow extends RunStandingColumns, StepCountColumns {
  readonly run_id: string;
  readonly pipeline: string;
  readonly state: RunState;
  readonly error: Failure | null;
  /** bigint as text; with all runs below it */
  readonly cost_nano: string;
  readonly reserved_nano: string;
}

export async function listRunStandings(
  db: Db,
  runIds: readonly string[],
): Promise<readonly RunStandingRow[]> {
  if (runIds.length === 0) return [];
  const { rows } = await db.raw<{ rows: RunStandingRow[] }>(
    `select r.run_id, r.pipeline, r.digest, r.state, r.error, ${awaitingOfRun} as awaiting,
       ${followsOfRun} as follows, ${stepsOfRun} as step_counts,
       coalesce(a.cost_nano, 0)::text as cost_nano, coalesce(a.reserved_nano, 0)::text as reserved_nano
     from run r
     left join lateral (
       select sum(settled_nano) as cost_nano,
         sum(reserved_nano) filter (where state in ('reserved', 'dispatched')) as reserved_nano
       from attempt where attempt.run_id = any (${runsWithin})
     ) a on true
     where r.run_id = any (?)`,
    [[...runIds]],
  );
  return rows;
}

/** By digest: how many steps a definition has. */
export async function countDefinitionSteps(
  db: Db,
  digests: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const { rows } = await db.raw<{ rows: { digest: string; steps: number }[] }>(
    `select digest, json_array_length(body -> 'steps') as steps from definition where digest = any (?)`,
    [[...digests]],
  );
  return new Map(rows.map(({ digest, steps }) => [digest, steps]));
}

/** How many events of a run lie before a horizon: the number of the last of them. */
export async function countEventsBefore(db: Db, runId: string, horizon: string): Promise<number> {
  const { rows } = await db.raw<{ rows: [{ count: number }] }>(
    'select count(*)::int as count from event where run_id = ? and xid < ?::text::xid8',
    [runId, horizon],
  );
  return rows[0].count;
}

/** Of these, those that the project has. */
export async function listOwnRuns(
  db: Db,
  projectId: string,
  runIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await db('run')
    .where({ project_id: projectId })
    .whereIn('run_id', [...runIds])
    .select('run_id');
  return new Set(rows.map(({ run_id }) => run_id));
}
