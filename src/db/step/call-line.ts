/** Calls of steps that wait for a free slot, and whose turn it is (core/routing/call-line.ts, N1 to N5). */
import type { StepItemKey } from '../attempt/attempt.ts';
import type { Db } from '../connect.ts';
import { takeLock } from '../locks.ts';
import { query, toJsonb } from '../statements.ts';

export interface NewQueuedCall extends StepItemKey {
  readonly line: string;
  readonly priority: number;
  /** The key of what it needs loaded; null: nothing. */
  readonly loads: string | null;
  /** The full instance that it rather waits for than to take one that is free (N5); null: any will do. */
  readonly awaits: string | null;
  /** How long it lets others go first if it was called without a result, by how often, ms. */
  readonly asideMs: readonly number[];
}

/** Puts a call of a waiting step in its line, in a transaction. One that is in the line keeps its place. */
export async function queueCall(trx: Db, { run_id, step_id, item, ...call }: NewQueuedCall): Promise<void> {
  await takeLock(trx, 'call_line', call.line, run_id); // N2: many calls of a run come at once, each to a place of its own
  await trx.raw(
    `insert into queued_call (run_id, step_id, item, line, priority, loads, awaits, place)
     values (:run_id, :step_id, :item, :line, :priority, :loads, :awaits, greatest(
       coalesce((select max(q.place) from queued_call q where q.line = :line and q.run_id = :run_id), 0),
       coalesce((select l.served from call_line l where l.line = :line), 0)) + 1)
     on conflict (run_id, step_id, item) do update set line = excluded.line, priority = excluded.priority,
       loads = excluded.loads, awaits = excluded.awaits,
       calls = queued_call.calls + 1, called_at = null,
       call_after = clock_timestamp() + interval '1 millisecond'
         * (cast(:asideMs as float8[]))[least(queued_call.calls + 1, cardinality(cast(:asideMs as float8[])))]
     where queued_call.called_at is not null or queued_call.line <> excluded.line`,
    { run_id, step_id, item, ...call, asideMs: [...call.asideMs] },
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
  /** How long ago a call was last called that passed no other (W5); null: never. */
  readonly since_turn_ms: number | null;
  /** The instances that some of them rather wait for (N5). */
  readonly awaited: readonly string[];
}

/** A called one that has not come after this time is called again: its signal, or its worker, was lost. */
const lostAfter = `interval '30 seconds'`;

/**
 * N5. A call may take other slots after a change of budgets or settings, so it is called for any slot again: after a
 * minute, then after twice the time, at last once in an hour.
 */
const awaits = `case when coalesce(q.call_after, q.queued_at)
  > clock_timestamp() - interval '1 minute' * least(60, power(2, least(q.calls, 10))) then q.awaits end`;

/** Drops calls that wait no longer, and reports how long the lines are: first those that were not called for longest. */
export async function readLines(db: Db): Promise<readonly LineLength[]> {
  await db.raw(
    `delete from queued_call q where not exists (select from step s where s.run_id = q.run_id
       and s.step_id = q.step_id and s.item = q.item and s.state = 'waiting' and s.awaiting = 'slot')`,
  );
  await db.raw('delete from call_line l where not exists (select from queued_call q where q.line = l.line)');
  return query<LineLength>(db).all(
    `select q.line,
       (count(*) filter (where q.called_at is null or q.called_at < clock_timestamp() - ${lostAfter}))::int as waiting,
       (count(*) filter (where q.called_at >= clock_timestamp() - ${lostAfter}))::int as called,
       coalesce(bool_or(q.loads is not null), false) as has_keys,
       (extract(epoch from clock_timestamp() - l.served_at) * 1000)::float8 as since_turn_ms,
       coalesce(array_agg(distinct ${awaits}) filter (where ${awaits} is not null), '{}') as awaited
     from queued_call q left join call_line l using (line)
     group by q.line, l.served_at order by min(q.priority), l.served_at nulls first, q.line`,
  );
}

/** A call of a line, by its place. */
export interface QueuedMember extends StepItemKey {
  readonly rank: number;
  readonly waitedMs: number;
  readonly key: string | null;
  /** N5 */
  readonly instanceId: string | null;
  readonly isCalled: boolean;
}

export interface MembersQuery {
  readonly line: string;
  /** The instances that calls rather wait for and that have a free slot, or one as good; others are left out (N5). */
  readonly open: readonly string[];
  readonly limit: number;
}

/** Of a called one that has not come. */
const isOpen = `(q.called_at is null or q.called_at < clock_timestamp() - ${lostAfter})`;

/** Whether a call may be called: its step waits, its run is not paused, and it lets no others go first. */
const mayBeCalled = `s.state = 'waiting' and s.awaiting = 'slot' and r.state <> 'paused'
  and (q.call_after is null or q.call_after <= clock_timestamp())`;

const inOrder = 'q.priority, q.place, q.queued_at, q.run_id, q.step_id, q.item';

export function hasCallable(db: Db, line: string): Promise<boolean> {
  return query(db).some(
    `select 1 from queued_call q join step s using (run_id, step_id, item) join run r using (run_id)
     where q.line = ? and ${isOpen} and ${mayBeCalled} limit 1`,
    [line],
  );
}

/** The first calls of a line that may be called, and those that were called, in order. */
export function readMembers(db: Db, { line, open, limit }: MembersQuery): Promise<readonly QueuedMember[]> {
  return query<QueuedMember>(db).all(
    `select q.run_id, q.step_id, q.item, q.priority as rank, q.loads as key, ${awaits} as "instanceId",
       not ${isOpen} as "isCalled",
       (extract(epoch from clock_timestamp() - q.queued_at) * 1000)::float8 as "waitedMs"
     from queued_call q join step s using (run_id, step_id, item) join run r using (run_id)
     where q.line = ? and (not ${isOpen} or (${mayBeCalled} and (${awaits} is null or ${awaits} = any (?))))
     order by ${inOrder} limit ?`,
    [line, [...open], limit],
  );
}

/**
 * Calls calls of a line; those of paused runs stay. It locks their steps in the order in which claims do.
 * @param isNext selects `queued_call q` @param isServed whether later calls take places behind theirs (N2)
 * @returns how many
 */
function callThose(
  db: Db,
  {
    line,
    isNext,
    isServed,
    limit,
    ...bindings
  }: {
    readonly line: string;
    readonly isNext: string;
    readonly isServed: boolean;
    readonly limit: number;
    readonly ids?: string;
  },
): Promise<number> {
  return query(db).written(
    `with next as materialized (
       select q.run_id, q.step_id, q.item, q.place from queued_call q
       join step s using (run_id, step_id, item) join run r using (run_id)
       where q.line = :line and ${isOpen} and ${mayBeCalled} and ${isNext}
       order by ${inOrder} limit :limit
     ), due as (
       select s.run_id, s.step_id, s.item, n.place from step s join next n using (run_id, step_id, item)
       order by s.run_id, s.step_id, s.item for update of s skip locked
     ), called as (
       update queued_call q set called_at = clock_timestamp() from due
       where q.run_id = due.run_id and q.step_id = due.step_id and q.item = due.item
     ), served as (
       insert into call_line (line, served) select :line, max(place) from due having count(*) > 0 and :isServed
       on conflict (line) do update set served = greatest(call_line.served, excluded.served),
         served_at = excluded.served_at
     )
     update step s set wake_requested_at = clock_timestamp() from due
     where s.run_id = due.run_id and s.step_id = due.step_id and s.item = due.item`,
    { line, limit, isServed, ...bindings },
  );
}

/** Calls the next calls of a line. @returns how many */
export function callNext(db: Db, line: string, limit: number): Promise<number> {
  return callThose(db, { line, isNext: 'true', isServed: true, limit });
}

/** Calls these calls of a line. @param isServed false: they pass others (W5) @returns how many */
export function callMembers(
  db: Db,
  line: string,
  { members, isServed }: { readonly members: readonly StepItemKey[]; readonly isServed: boolean },
): Promise<number> {
  const ids = toJsonb(members.map(({ run_id, step_id, item }) => ({ run_id, step_id, item })));
  const isNext = `(q.run_id, q.step_id, q.item) in (select i.run_id, i.step_id, i.item
    from json_to_recordset(cast(:ids as json)) i (run_id text, step_id text, item int))`;
  return callThose(db, { line, isNext, isServed, limit: members.length, ids });
}
