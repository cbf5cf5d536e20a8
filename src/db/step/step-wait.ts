/**
 * Steps that wait without occupying a slot, and external ends of their waits. A wake is written with the change that
 * causes it, and stays until the step's run was notified. Rows are locked in the order in which claims lock them.
 */

import type { StepItemKey } from '../attempt/attempt.ts';
import type { Db } from '../connect.ts';
import { sharing, takeLock } from '../locks.ts';
import { query, toJson } from '../statements.ts';

export interface WaitingRow extends StepItemKey {
  readonly project_id: string;
  /** The digest of its run's definition. */
  readonly digest: string;
}

/** Lists a project's steps that wait for room in a budget. */
export function listWaitingForBudget(
  db: Db,
  { project_id, scope }: { readonly project_id: string; readonly scope: string },
): Promise<readonly WaitingRow[]> {
  return query<WaitingRow>(db).all(
    `select s.run_id, s.step_id, s.item, r.project_id, r.digest from step s join run r using (run_id)
     where s.state = 'waiting' and s.awaiting = 'budget' and s.wake_requested_at is null and s.budget_scope = ?
       and r.project_id = ?
     order by s.run_id, s.step_id, s.item`,
    [scope, project_id],
  );
}

const lockUnits = `select s.run_id, s.step_id, s.item from step s
  join unnest(:runIds::text[], :stepIds::text[], :items::int[]) u (run_id, step_id, item)
    on s.run_id = u.run_id and s.step_id = u.step_id and s.item = u.item
  where s.state = 'waiting' order by s.run_id, s.step_id, s.item for update of s`;

function toColumns(units: readonly StepItemKey[]) {
  return {
    runIds: units.map(({ run_id }) => run_id),
    stepIds: units.map(({ step_id }) => step_id),
    items: units.map(({ item }) => item),
  };
}

/** Wakes those that still wait. @returns how many */
export async function wakeUnits(db: Db, units: readonly StepItemKey[]): Promise<number> {
  if (units.length === 0) return 0;
  return query(db).written(
    `with due as (${lockUnits})
     update step s set wake_requested_at = clock_timestamp() from due
     where s.run_id = due.run_id and s.step_id = due.step_id and s.item = due.item`,
    toColumns(units),
  );
}

/**
 * Wakes steps that wait for a capability which now has an instance that could take a call, up to `limit`. Each is woken
 * once: if the instance is full or its breaker is open, the wait for that is elsewhere, and another wake follows only
 * after it is gone.
 * @returns how many
 */
export async function wakeForCapabilities(db: Db, limit: number): Promise<number> {
  return query(db, 'wake_for_capabilities').written(
    `with due as (
       select s.run_id, s.step_id, s.item from step s join run r using (run_id)
       where s.state = 'waiting' and exists (
         select from instance i where i.name = s.awaited_capability and i.state in ('up', 'suspect')
           and i.drained_by is null and serves(i.owner_project, i.shared_with, r.project_id))
       order by s.run_id, s.step_id, s.item limit ? for update of s skip locked
     )
     update step s set wake_requested_at = clock_timestamp(), awaited_capability = null from due
     where s.run_id = due.run_id and s.step_id = due.step_id and s.item = due.item`,
    [limit],
  );
}

/**
 * Wakes every step that waits for room in this budget. A step that is locked is being claimed, and is skipped.
 * @param trx in which the limit is locked
 * @returns how many
 */
export async function wakeScope(trx: Db, scope: string): Promise<number> {
  await takeLock(trx, 'wakes');
  return query(trx).written(
    `with due as (
       select run_id, step_id, item from step
       where state = 'waiting' and awaiting = 'budget' and budget_scope = ?
       order by run_id, step_id, item for update skip locked
     )
     update step s set wake_requested_at = clock_timestamp() from due
     where s.run_id = due.run_id and s.step_id = due.step_id and s.item = due.item`,
    [scope],
  );
}

/** Ends steps that still wait, as skipped by a person, and notifies their runs. @returns how many */
export async function skipUnits(
  trx: Db,
  units: readonly StepItemKey[],
  data: { readonly review_id: string; readonly by: string },
): Promise<number> {
  const rows = await query(trx).all(
    `with due as (${lockUnits}), skipped as (
       update step s set state = 'skipped', awaiting = null, wait_until = null, budget_scope = null,
         finished_at = clock_timestamp(), wake_requested_at = clock_timestamp() from due
       where s.run_id = due.run_id and s.step_id = due.step_id and s.item = due.item
       returning s.run_id, s.step_id, s.item
     ), logged as (
       insert into event (run_id, type, step_id, item, data)
       select run_id, 'step.skipped', step_id, nullif(item, 0), cast(:data as jsonb) from skipped
     )
     select 1 from skipped`,
    { ...toColumns(units), data: toJson({ reason: 'review', ...data }) },
  );
  return rows.length;
}

export interface WakeRow extends StepItemKey {
  readonly pipeline: string;
  /** Exact time of the request for the wake. */
  readonly asked: string;
}

/** Lists wakes whose run has not been notified. */
export function listWakes(db: Db, limit: number): Promise<readonly WakeRow[]> {
  return query<WakeRow>(db).all(
    `select s.run_id, s.step_id, s.item, r.pipeline, s.wake_requested_at::text as asked
     from step s join run r using (run_id) where s.wake_requested_at is not null limit ?`,
    [limit],
  );
}

/** A wake that was requested again meanwhile stays. The wake of a step that is being claimed ends with the claim. */
export async function clearWake(db: Db, { run_id, step_id, item, asked }: WakeRow): Promise<void> {
  await db.raw(
    `with told as (
       select run_id, step_id, item from step
       where run_id = ? and step_id = ? and item = ? and wake_requested_at = ?::timestamptz
         and ${sharing('wakes')}
       for update skip locked
     )
     update step s set wake_requested_at = null from told
     where s.run_id = told.run_id and s.step_id = told.step_id and s.item = told.item`,
    [run_id, step_id, item, asked],
  );
}
