/**
 * Changes of a step outside of its attempts: it waits for a correction or a person, a person decides it, or its run
 * decides about several steps in one statement.
 */
import type { EventType, StepLogData } from '@capstan/core/contracts/event';
import type { AwaitedEvent } from '@capstan/core/contracts/outside-event';
import type { Failure, Json, JsonObject } from '@capstan/core/contracts/primitives';
import type { Awaiting } from '@capstan/core/contracts/run-step';
import type { StepItemKey, StepKey } from '../attempt/attempt.ts';
import type { Db } from '../connect.ts';
import { instantText, query, toJson, toJsonb } from '../statements.ts';
import { nameAwaited } from './event-wait.ts';
import { openSteps, waitOver } from './step.ts';

interface StepHold {
  readonly state: 'retrying' | 'in_review';
  readonly error: Failure | null;
  /** For the run's log. */
  readonly data: JsonObject;
}

/**
 * Holds a step open, even one without a row. An ended step stays ended.
 * @returns whether it is held now, newly or from before
 */
export async function keepStepOpen(
  db: Db,
  step: StepItemKey,
  { state, error, data }: StepHold,
): Promise<boolean> {
  const row = await query<{ held: boolean }>(db).first(
    `with held as (
       insert into step (run_id, step_id, item, state, error, started_at)
       values (:run_id, :step_id, :item, :state, :error, clock_timestamp())
       on conflict (run_id, step_id, item) do update set state = excluded.state,
         error = coalesce(excluded.error, step.error), ${waitOver}
         where step.state in ${openSteps} and step.state <> excluded.state
       returning run_id, step_id, item
     ), logged as (
       insert into event (run_id, type, step_id, item, data)
       select run_id, 'step.' || :state, step_id, nullif(item, 0), cast(:data as jsonb) from held
     )
     select exists (select 1 from held) or exists (select 1 from step
       where run_id = :run_id and step_id = :step_id and item = :item and state = :state) as held`,
    { state, error: error === null ? null : toJsonb(error), data: toJsonb(data), ...pick(step) },
  );
  return row?.held === true;
}

interface NewWait {
  readonly awaiting: Awaiting;
  /** Latest end of the wait: a time (RFC 3339), or a duration from its beginning; both null = no end. */
  readonly until: string | null;
  readonly for_ms: number | null;
  /** Whether the wait begins the step. */
  readonly begins: boolean;
  readonly budget_scope?: string;
  /** A capability that wakes the step, once, when it appears. */
  readonly capability?: string;
  readonly sub_run_id?: string;
  readonly event?: AwaitedEvent & { readonly project_id: string };
  /** For the run's log. */
  readonly data?: JsonObject;
}

interface HeldWait {
  readonly wait_until: Date | null;
  /** By the database's clock; null: the wait has no end of its own. */
  readonly wait_left_ms: number | null;
}

const isSame = `step.state = 'waiting' and step.awaiting = excluded.awaiting`;
const leftMs = '(extract(epoch from wait_until - clock_timestamp()) * 1000)::float8 as wait_left_ms';

const keep = `with clock as materialized (select clock_timestamp() as now), held as (
   insert into step (run_id, step_id, item, revision, state, awaiting, wait_since, wait_until, budget_scope,
     awaited_capability, sub_run_id, awaited_event, awaited_key, started_at)
   select :run_id, :step_id, :item, :revision, 'waiting', :awaiting, now,
     coalesce(cast(:until as timestamptz), now + cast(:for_ms as float8) * interval '1 millisecond'),
     :budget_scope, :capability, :sub_run_id, :awaited_event, :awaited_key, case when :begins then now end from clock
   where not exists (select 1 from run where run_id = :run_id and finished_at is not null)
   on conflict (run_id, step_id, item) do update set state = 'waiting', awaiting = excluded.awaiting,
     wait_since = case when ${isSame} then step.wait_since else excluded.wait_since end,
     wait_until = case when ${isSame} and cast(:until as timestamptz) is null then step.wait_until
       else excluded.wait_until end,
     budget_scope = excluded.budget_scope, awaited_capability = excluded.awaited_capability,
     sub_run_id = coalesce(excluded.sub_run_id, step.sub_run_id),
     awaited_event = excluded.awaited_event, awaited_key = excluded.awaited_key,
     started_at = coalesce(step.started_at, excluded.started_at)
   where step.state in ${openSteps} and not (${isSame}
     and step.budget_scope is not distinct from excluded.budget_scope
     and step.awaited_capability is not distinct from excluded.awaited_capability
     and (cast(:until as timestamptz) is null or step.wait_until is not distinct from excluded.wait_until))
   returning wait_until, xmax = 0 as is_new
 ), logged as (
   insert into event (run_id, type, step_id, item, data)
   select :run_id, type, :step_id, nullif(cast(:item as int), 0), line from held cross join lateral (values
     (1, 'step.started', '{}'::jsonb), (2, 'step.waiting', jsonb_build_object('awaiting', cast(:awaiting as text),
       'until', ${instantText('wait_until')}) || cast(:data as jsonb))
   ) told (at, type, line)
   where at = 2 or (is_new and :begins) order by at
 )
 select wait_until, ${leftMs} from held
 union all
 select wait_until, ${leftMs} from step
 where run_id = :run_id and step_id = :step_id and item = :item and state = 'waiting' and awaiting = :awaiting
   and not exists (select 1 from held)`;

/**
 * Makes a step wait, without an attempt. A step that already waits for the same continues that wait. It is logged again
 * only if its end or budget differs, or the capability it was woken for is gone. A requested wake stays.
 * @returns undefined if the step or its run has ended
 */
export function keepWaiting(
  db: Db,
  step: StepKey,
  { awaiting, until, for_ms, begins, budget_scope, capability, sub_run_id, event, data = {} }: NewWait,
): Promise<HeldWait | undefined> {
  return query<HeldWait>(db).first(keep, {
    revision: step.revision,
    awaiting,
    until,
    for_ms,
    begins,
    data: toJsonb(data),
    budget_scope: budget_scope ?? null,
    capability: capability ?? null,
    sub_run_id: sub_run_id ?? null,
    awaited_event: event === undefined ? null : nameAwaited(event.project_id, event.name),
    awaited_key: event?.key ?? null,
    ...pick(step),
  });
}

/** Whether an attempt is open whose end may still be reported. @param key of the step's attempts */
export async function isUnderWay(db: Db, key: string): Promise<boolean> {
  const row = await query<{ found: boolean }>(db).one(
    `select exists (select 1 from attempt where key = ? and state in ('reserved', 'dispatched')) as found`,
    [key],
  );
  return row.found;
}

/** Ends an open step with a person's answer: an output, or skipped. @returns false if it had ended */
export function answerStep(
  db: Db,
  step: StepItemKey,
  answer:
    | { readonly state: 'succeeded'; readonly output: Json; readonly data: JsonObject }
    | { readonly state: 'skipped'; readonly data: JsonObject },
): Promise<boolean> {
  const output = answer.state === 'succeeded' ? toJson(answer.output) : null;
  return query(db).some(
    `with answered as (
       update step set state = :state, output = :output, error = null, finished_at = clock_timestamp(), ${waitOver}
       where run_id = :run_id and step_id = :step_id and item = :item and state in ${openSteps}
       returning run_id, step_id, item
     ), logged as (
       insert into event (run_id, type, step_id, item, data)
       select run_id, 'step.' || :state, step_id, nullif(item, 0), cast(:data as jsonb) from answered
     )
     select 1 from answered`,
    { state: answer.state, output, data: toJsonb(answer.data), ...pick(step) },
  );
}

/** Writes a line about a step to the run's log. */
export async function logStep(
  db: Db,
  { run_id, step_id, item }: StepItemKey,
  { type, data }: { readonly type: Extract<EventType, `step.${string}`>; readonly data: JsonObject },
): Promise<void> {
  await db('event').insert({ run_id, step_id, item: item === 0 ? null : item, type, data: toJsonb(data) });
}

function pick({ run_id, step_id, item }: StepItemKey): StepItemKey {
  return { run_id, step_id, item };
}

/** The decision about a due step: it is skipped, runs once per item, or fails because the decision is impossible. */
export type StepDecision =
  | { readonly step_id: string; readonly state: 'skipped' }
  /** skipped: numbers of items that do not run. */
  | {
      readonly step_id: string;
      readonly state: 'running';
      readonly items: number;
      readonly skipped?: readonly number[];
    }
  | { readonly step_id: string; readonly state: 'failed'; readonly error: Failure };

/** A step that has a row stays unchanged. */
export async function recordDecisions(
  db: Db,
  runId: string,
  decisions: readonly StepDecision[],
): Promise<void> {
  await db.raw(
    `with due as materialized (
       select * from rows from (jsonb_to_recordset(cast(:decisions as jsonb))
         as (step_id text, state text, items int, error jsonb, skipped int[])) with ordinality
     ), decided as (
       insert into step (run_id, step_id, item, state, items, error, started_at, finished_at)
       select :runId, step_id, 0, state, items, error, case state when 'running' then clock_timestamp() end,
         case when state <> 'running' then clock_timestamp() end
       from due order by ordinality on conflict do nothing returning step_id
     ), left_out as (
       insert into step (run_id, step_id, item, state, finished_at)
       select :runId, step_id, item, 'skipped', clock_timestamp() from due cross join lateral unnest(skipped) item
       order by ordinality, item on conflict do nothing returning step_id, item
     )
     insert into event (run_id, type, step_id, item, data)
     (select :runId, 'step.' || case state when 'running' then 'started' else state end, step_id, null::int,
       case state when 'running' then jsonb_build_object('items', items)
         when 'skipped' then '{"reason": "when"}' else jsonb_build_object('error', error) end
     from due join decided using (step_id) order by ordinality)
     union all
     (select :runId, 'step.skipped', step_id, item, '{"reason": "when"}' from left_out order by step_id, item)`,
    { runId, decisions: toJsonb(decisions) },
  );
}

export interface StepChange {
  readonly step_id: string;
  /** 0 = the step as a whole. */
  readonly item: number;
  readonly state: 'skipped' | 'succeeded' | 'failed' | 'cancelled';
  /** Absent = that of the row. */
  readonly error?: Failure | undefined;
}

const endAll = `with due as materialized (
   select * from rows from (jsonb_to_recordset(cast(:changes as jsonb))
     as (step_id text, item int, state text, error jsonb)) with ordinality
 ), locked as materialized (
   select s.step_id, s.item, s.state, s.awaiting, s.sub_run_id from due d join step s
     on s.run_id = :runId and s.step_id = d.step_id and s.item = d.item
   where s.state in ${openSteps} order by s.step_id, s.item for update of s
 ), held as (
   select * from locked where state in ('waiting', 'in_review', 'retrying')
 ), stopped as (
   update run r set state = 'cancelling', cancel_requested_at = clock_timestamp(), cancel_mode = 'graceful',
     cancel_reason = 'the step that started it was given up'
   from held h where h.awaiting = 'run' and r.run_id = h.sub_run_id and r.state in ('queued', 'running', 'paused')
   returning r.run_id, r.cancel_reason
 ), withdrawn as (
   update review r set state = 'cancelled', decided_at = clock_timestamp(), version = r.version + 1,
     claim_expires_at = null
   from held h where r.run_id = :runId and r.step_id = h.step_id and r.item = h.item
     and r.state in ('open', 'claimed')
 ), climbed as (
   update escalation e set state = 'cancelled', finished_at = clock_timestamp(), transition = e.transition + 1,
     error = coalesce(e.error, '{"code": "escalation_cancelled", "message": "the step was given up"}')
   from held h where e.run_id = :runId and e.step_id = h.step_id and e.item = h.item
     and e.state in ('running', 'in_review')
 ), ended as (
   insert into step (run_id, step_id, item, state, error, finished_at)
   select :runId, step_id, item, state, error, clock_timestamp() from due
   where (select count(*) from locked) >= 0 order by step_id, item
   on conflict (run_id, step_id, item) do update
     set state = excluded.state, finished_at = excluded.finished_at, ${waitOver},
       error = case when excluded.state in ('failed', 'cancelled') then coalesce(excluded.error, step.error) end
     where step.state in ${openSteps}
   returning step_id, item, error
 )
 insert into event (run_id, type, step_id, item, data)
 select run_id, 'run.cancelling', null, null, jsonb_build_object('reason', cancel_reason) from stopped
 union all
 (select :runId, 'step.' || state, step_id, nullif(item, 0), case when ended.error is not null
     then jsonb_build_object('error', ended.error) when state <> 'skipped' then '{}'
     when exists (select 1 from step r where r.run_id = :runId and r.step_id = due.step_id and r.item > 0)
     then '{"reason": "round"}' else '{"reason": "dependencies"}' end
  from due join ended using (step_id, item) order by ordinality)`;

/**
 * Writes ends without an attempt. An ended step stays. Its waits end: its review is cancelled, its ladder ends, and the
 * run that it has started is asked to cancel.
 */
export async function recordChanges(db: Db, runId: string, changes: readonly StepChange[]): Promise<void> {
  await db.raw(endAll, { runId, changes: toJsonb(changes) });
}

/** The places, from 0, of the steps that were cancelled. */
export async function listCalledOff(db: Db, steps: readonly StepItemKey[]): Promise<readonly number[]> {
  if (steps.length === 0) return [];
  const rows = await query<{ place: number }>(db, 'list_called_off').all(
    `select (w.ordinality - 1)::int as place
     from unnest(:runs::text[], :ids::text[], :items::int[]) with ordinality w (run_id, step_id, item)
     join step s using (run_id, step_id, item) where s.state = 'cancelled'`,
    {
      runs: steps.map(({ run_id }) => run_id),
      ids: steps.map(({ step_id }) => step_id),
      items: steps.map(({ item }) => item),
    },
  );
  return rows.map(({ place }) => place);
}

/** Writes the progress of a step's or item's call to the run's log; nothing after its end. */
export async function insertProgressNote(
  db: Db,
  { run_id, step_id, item }: StepItemKey,
  data: { readonly progress: number; readonly message?: string },
): Promise<void> {
  await db.raw(
    `insert into event (run_id, type, step_id, item, data)
     select run_id, 'step.progress', step_id, nullif(item, 0), ?::jsonb from step
     where run_id = ? and step_id = ? and item = ? and state in ${openSteps}`,
    [toJsonb(data), run_id, step_id, item],
  );
}

/** A line logged by the instance during a step's call. */
export interface StepLogLine extends StepItemKey {
  readonly attempt: number;
  /** Time since its arrival, by the clock of this process. */
  readonly age_ms: number;
  readonly data: StepLogData;
}

const logAll = `with line as materialized (
   select * from rows from (jsonb_to_recordset(cast(:lines as jsonb))
     as (run_id text, step_id text, item int, attempt int, age_ms float8, data jsonb)) with ordinality
 ), known as materialized (
   select run_id from run where run_id in (select run_id from line) order by run_id for key share
 )
 insert into event (run_id, type, step_id, item, attempt, at, data)
 select run_id, 'step.log', step_id, nullif(item, 0), attempt,
   clock_timestamp() - age_ms * interval '1 millisecond', data
 from line join known using (run_id) order by ordinality`;

/** Writes lines of several runs, also of ended steps. Lines of deleted runs are left out. */
export async function insertStepLog(db: Db, lines: readonly StepLogLine[]): Promise<void> {
  await db.raw(logAll, { lines: toJsonb(lines) });
}
