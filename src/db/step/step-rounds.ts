/**
 * Rounds of a step with `repeat`: items of the step, of which there is one more each time that it is repeated. The row
 * of the step as a whole counts them, and gets the output of the last one.
 */
import type { Json } from '@capstan/core/contracts/primitives';
import type { StepItemKey } from '../attempt/attempt.ts';
import type { Db } from '../connect.ts';
import { instantText, query, toJsonb } from '../statements.ts';
import { openSteps, waitOver } from './step.ts';

interface RoundRow {
  readonly output: Json;
  /** Since the step began, by the database's clock. */
  readonly spent_ms: number;
  /** Unix time of the database. */
  readonly now_ms: number;
}

/** Reads a round that has succeeded. @returns undefined if there is none */
export function readEndedRound(
  db: Db,
  { run_id, step_id, item }: StepItemKey,
): Promise<RoundRow | undefined> {
  return query<RoundRow>(db).first(
    `select r.output, floor(extract(epoch from now) * 1000)::float8 as now_ms,
       coalesce(extract(epoch from now - w.started_at), 0)::float8 * 1000 as spent_ms
     from (select clock_timestamp() as now) clock cross join step r
     join step w on w.run_id = r.run_id and w.step_id = r.step_id and w.item = 0
     where r.run_id = ? and r.step_id = ? and r.item = ? and r.output is not null`,
    [run_id, step_id, item],
  );
}

const openNext = `with counted as (
   update step set items = :next where run_id = :run_id and step_id = :step_id and item = 0 and items = :next - 1
     and state in ${openSteps} and not exists (select 1 from run where run_id = :run_id and finished_at is not null)
   returning run_id, step_id
 ), waiting as (
   insert into step (run_id, step_id, item, state, awaiting, wait_since, wait_until)
   select run_id, step_id, :next, 'waiting', 'time', clock_timestamp(), cast(:until as timestamptz) from counted
   where cast(:until as timestamptz) is not null on conflict do nothing
   returning run_id, step_id, item, wait_until
 ), logged as (
   insert into event (run_id, type, step_id, item, data)
   select run_id, 'step.round', step_id, :next - 1, cast('{"last": false}' as jsonb) from counted
   union all
   select run_id, 'step.waiting', step_id, item,
     jsonb_build_object('awaiting', 'time', 'until', ${instantText('wait_until')}) from waiting
 )
 select extract(epoch from wait_until)::float8 * 1000 as until from step
 where run_id = :run_id and step_id = :step_id and item = :next and awaiting = 'time'`;

/**
 * Counts the next round, which waits for its time. A repeated request changes nothing.
 * @param until Unix milliseconds; null: it begins at once
 * @returns the end of the wait, as it was stored first
 */
export async function openNextRound(
  db: Db,
  { run_id, step_id, item }: StepItemKey,
  until: number | null,
): Promise<number | null> {
  const instant = until === null ? null : new Date(until).toISOString();
  const known = await query<{ until: number }>(db).first(openNext, {
    run_id,
    step_id,
    next: item + 1,
    until: instant,
  });
  return known?.until ?? until;
}

/** Ends a step with the output of its last round. An ended step stays. */
export async function endWithRound(
  db: Db,
  { run_id, step_id, item }: StepItemKey,
  data: { readonly rounds: number },
): Promise<void> {
  await db.raw(
    `with ended as (
       update step w set state = 'succeeded', output = r.output, error = null, finished_at = clock_timestamp(),
         ${waitOver}
       from step r where w.run_id = :run_id and w.step_id = :step_id and w.item = 0 and w.state in ${openSteps}
         and r.run_id = w.run_id and r.step_id = w.step_id and r.item = :item
       returning w.run_id, w.step_id
     )
     insert into event (run_id, type, step_id, item, data)
     select run_id, type, step_id, round, line from ended cross join lateral (values
       (1, 'step.round', cast(:item as int), cast('{"last": true}' as jsonb)),
       (2, 'step.succeeded', null, cast(:data as jsonb))
     ) told (at, type, round, line) order by at`,
    { run_id, step_id, item, data: toJsonb(data) },
  );
}
