/** Calls of steps that wait for a free slot, and whose turn it is (core/routing/call-line.ts, N1 to N5). */
import type { StepItemKey } from '../attempt/attempt.ts';
import type { Db } from '../connect.ts';
import { takeLock } from '../locks.ts';
import { query, toJsonb } from '../statements.ts';

/** N5 */
interface RefusedSlots {
  readonly awaits: string | null;
  readonly refuses: readonly string[] | null;
}

export interface NewQueuedCall extends StepItemKey, RefusedSlots {
  readonly line: string;
  readonly priority: number;
  /** The key of what it needs loaded; null: nothing. */
  readonly loads: string | null;
  /** How long it lets others go first if it was called without a result, by how often, ms. */
  readonly asideMs: readonly number[];
}

/** Puts a call of a waiting step in its line, in a transaction. One that is in that line keeps its place. */
export async function queueCall(
  trx: Db,
  { run_id, step_id, item, refuses, ...call }: NewQueuedCall,
): Promise<void> {
  await takeLock(trx, 'call_line', call.line, run_id); // N2: many calls of a run come at once, each to a place of its own
  await trx.raw(
    `insert into queued_call (run_id, step_id, item, line, priority, loads, awaits, refuses, place)
     values (:run_id, :step_id, :item, :line, :priority, :loads, :awaits, :refuses, greatest(
       coalesce((select max(q.place) from queued_call q where q.line = :line and q.run_id = :run_id), 0),
       coalesce((select l.served from call_line l where l.line = :line and l.priority = :priority), 0)) + 1)
     on conflict (run_id, step_id, item) do update set line = excluded.line, priority = excluded.priority,
       place = case when queued_call.line = excluded.line then queued_call.place else excluded.place end,
       loads = excluded.loads, awaits = excluded.awaits, refuses = excluded.refuses,
       calls = queued_call.calls + 1, called_at = null,
       call_after = clock_timestamp() + interval '1 millisecond'
         * (cast(:asideMs as float8[]))[least(queued_call.calls + 1, cardinality(cast(:asideMs as float8[])))]
     where queued_call.called_at is not null or queued_call.line <> excluded.line`,
    { run_id, step_id, item, ...call, refuses: refuses && [...refuses], asideMs: [...call.asideMs] },
  );
}

export interface CallInLine {
  readonly line: string;
  /** A slot is expected to be free for it. */
  readonly is_called: boolean;
  readonly waited_ms: number;
  /** Calls before it in line. */
  readonly ahead: number;
}

export function readQueuedCall(
  db: Db,
  { run_id, step_id, item }: StepItemKey,
): Promise<CallInLine | undefined> {
  return query<CallInLine>(db).first(
    `select q.line, q.called_at is not null as is_called,
       (extract(epoch from clock_timestamp() - q.queued_at) * 1000)::float8 as waited_ms,
       (select count(*)::int from queued_call o where o.line = q.line
         and (o.priority, o.place, o.queued_at) < (q.priority, q.place, q.queued_at)) as ahead
     from queued_call q where q.run_id = ? and q.step_id = ? and q.item = ?`,
    [run_id, step_id, item],
  );
}

export interface LineLength {
  readonly line: string;
  /** Calls that may be called. */
  readonly waiting: number;
  /** Called, and not at work yet. */
  readonly called: number;
  /** Some of them have a key. */
  readonly has_keys: boolean;
  /** How long ago a call was last called that passed no other of its priority, by priority (W5); null: never. */
  readonly since_turn_ms: Readonly<Record<number, number | null>>;
  /** The instances that some of them rather wait for (N5). */
  readonly awaited: readonly string[];
}

/** A called one that has not come after this time is called again: its signal, or its worker, was lost. */
const lostAfter = `interval '30 seconds'`;

/** Of a called one that has not come. */
const isOpen = `(q.called_at is null or q.called_at < clock_timestamp() - ${lostAfter})`;

/**
 * N5. A call may take other slots after a change of budgets or settings, so it is called for any slot again: after a
 * minute, then after twice the time, at last every 16 minutes.
 */
const awaits = `case when coalesce(q.call_after, q.queued_at)
  > clock_timestamp() - interval '1 minute' * power(2, least(q.calls, 4)) then q.awaits end`;

/** Drops calls that wait no longer, and reports how long the lines are: first those that were not called for longest. */
export async function readLines(db: Db): Promise<readonly LineLength[]> {
  await db.raw('select drop_ended_waits()');
  return query<LineLength>(db).all(
    `select q.line, q.waiting, q.called, q.has_keys, q.awaited, coalesce(l.since_turn_ms, '{}') as since_turn_ms
     from (
       select q.line, min(q.priority) as priority, (count(*) filter (where ${isOpen}))::int as waiting,
         (count(*) filter (where not ${isOpen}))::int as called, bool_or(q.loads is not null) as has_keys,
         array_remove(array_agg(distinct ${awaits}), null) as awaited
       from queued_call q group by q.line
     ) q left join (
       select l.line, max(l.served_at) as served_at, json_object_agg(l.priority,
         extract(epoch from clock_timestamp() - l.turned_at) * 1000) as since_turn_ms
       from call_line l group by l.line
     ) l using (line)
     order by q.priority, l.served_at nulls first, q.line`,
  );
}

/** A call of a line, by its place. */
export interface QueuedMember extends StepItemKey, RefusedSlots {
  readonly rank: number;
  readonly waitedMs: number;
  readonly key: string | null;
  readonly isCalled: boolean;
}

/** N5: which calls may find a slot that they take. */
export interface MembersQuery {
  readonly line: string;
  /** The instances that calls may be called for now, by the names in `refuses`. */
  readonly open: readonly string[];
  /** Those that calls rather wait for no longer, or may be called for. */
  readonly released: readonly string[];
  readonly limit: number;
}

/** Whether a call may be called: its step waits, its run is not paused, and it lets no others go first. */
const mayBeCalled = `s.state = 'waiting' and s.awaiting = 'slot' and r.state <> 'paused'
  and (q.call_after is null or q.call_after <= clock_timestamp())`;

/** Of the projects that have a line of their own now, in one look. */
const mostOfProjects = 200;

const inOrder = 'q.priority, q.place, q.queued_at, q.run_id, q.step_id, q.item';

/** Whether one may be called for any slot. */
export function hasCallable(db: Db, line: string): Promise<boolean> {
  return query(db).some(
    `select 1 from queued_call q join step s using (run_id, step_id, item) join run r using (run_id)
     where q.line = ? and ${isOpen} and ${mayBeCalled} and ${awaits} is null limit 1`,
    [line],
  );
}

/** The first calls of a line that may be called, and those that were called, in order. */
export function readMembers(
  db: Db,
  { line, open, released, limit }: MembersQuery,
): Promise<readonly QueuedMember[]> {
  return query<QueuedMember>(db).all(
    `select q.run_id, q.step_id, q.item, q.priority as rank, q.loads as key, ${awaits} as awaits, q.refuses,
       not ${isOpen} as "isCalled",
       (extract(epoch from clock_timestamp() - q.queued_at) * 1000)::float8 as "waitedMs"
     from queued_call q join step s using (run_id, step_id, item) join run r using (run_id)
     where q.line = :line and (not ${isOpen} or (${mayBeCalled} and (${awaits} is null
       or q.awaits = any (:released) or not cast(:open as text[]) <@ q.refuses)))
     order by ${inOrder} limit :limit`,
    { line, open: [...open], released: [...released], limit },
  );
}

interface NextQuery {
  readonly line: string;
  /** Joins `queued_call q`, or selects of it. */
  readonly among?: string;
  readonly isNext?: string;
  readonly isPassing?: string;
  readonly limit: number;
  readonly bindings?: Readonly<Record<string, unknown>>;
}

/**
 * Calls calls of a line; those of paused runs stay. It locks their steps in the order in which claims do. Later calls
 * take places behind theirs (N2).
 * @returns how many
 */
function callThose(
  db: Db,
  { line, among = '', isNext = 'true', isPassing = 'false', limit, bindings }: NextQuery,
): Promise<number> {
  return query(db).written(
    `with next as materialized (
       select q.run_id, q.step_id, q.item, q.priority, q.place, ${isPassing} as is_passing from queued_call q
       join step s using (run_id, step_id, item) join run r using (run_id) ${among}
       where q.line = :line and ${isOpen} and ${mayBeCalled} and ${isNext}
       order by ${inOrder} limit :limit
     ), due as (
       select n.* from step s join next n using (run_id, step_id, item)
       order by s.run_id, s.step_id, s.item for update of s skip locked
     ), called as (
       update queued_call q set called_at = clock_timestamp() from due
       where q.run_id = due.run_id and q.step_id = due.step_id and q.item = due.item
     ), served as (
       insert into call_line (line, priority, served, turned_at)
       select :line, due.priority, max(due.place), case when not bool_and(due.is_passing) then clock_timestamp() end
       from due group by due.priority
       on conflict (line, priority) do update set served = greatest(call_line.served, excluded.served),
         served_at = excluded.served_at, turned_at = coalesce(excluded.turned_at, call_line.turned_at)
     )
     update step s set wake_requested_at = clock_timestamp() from due
     where s.run_id = due.run_id and s.step_id = due.step_id and s.item = due.item`,
    { line, limit, ...bindings },
  );
}

/** Calls the next calls of a line. @returns how many */
export function callNext(db: Db, line: string, limit: number): Promise<number> {
  return callThose(db, { line, limit });
}

/** Calls all calls of these projects in a line. @returns how many */
export function callProjects(db: Db, line: string, projects: readonly string[]): Promise<number> {
  const isNext = 'r.project_id = any (:projects)';
  return callThose(db, { line, isNext, limit: mostOfProjects, bindings: { projects: [...projects] } });
}

/** A call that is called. */
export interface CalledMember extends StepItemKey {
  /** It passes others of its priority (W5). */
  readonly isPassing: boolean;
}

/** Calls these calls of a line. @returns how many */
export function callMembers(db: Db, line: string, members: readonly CalledMember[]): Promise<number> {
  const called = members.map(({ run_id, step_id, item, isPassing }) => {
    return { run_id, step_id, item, is_passing: isPassing };
  });
  const among = `join json_to_recordset(cast(:called as json)) c (run_id text, step_id text, item int, is_passing boolean)
    using (run_id, step_id, item)`;
  return callThose(db, {
    line,
    among,
    isPassing: 'c.is_passing',
    limit: members.length,
    bindings: { called: toJsonb(called) },
  });
}
