/**
 * Reads the log of runs. A reader sees events of transactions that ended before the oldest one still open, in the order
 * (xid, id). A prefix of that order never changes, so a position in it is the event's number.
 */
import { type EventType, terminalEvents } from '@capstan/core/contracts/event';
import type { Json } from '@capstan/core/contracts/primitives';
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';
import type { LogSpan } from './run-list.ts';

export interface EventRow {
  readonly run_id: string;
  readonly at: Date;
  readonly type: EventType;
  readonly step_id: string | null;
  /** Null: the step as a whole. */
  readonly item: number | null;
  readonly attempt: number | null;
  readonly data: Json;
}

/** A position in the log of a run: right after the event with this number, transaction and id. */
export interface LogPosition {
  readonly seq: number;
  readonly xid: string;
  readonly id: string;
}

export interface NumberedEventRow extends EventRow, LogPosition {}

const logStart: LogPosition = { seq: 0, xid: '0', id: '0' };

/** The end of the readable part of the log; every event before it is readable. */
export async function readHorizon(db: Db): Promise<string> {
  const row = await query<{ horizon: string }>(db).first(
    'select pg_snapshot_xmin(pg_current_snapshot())::text as horizon',
  );
  return row?.horizon ?? '0';
}

const isReadable = 'xid < coalesce(:before::text::xid8, pg_snapshot_xmin(pg_current_snapshot()))';

/** The position after the event of this number, found by counting, for readers that know only the number. */
export async function findPosition(db: Db, runId: string, seq: number): Promise<LogPosition> {
  if (seq === 0) return logStart;
  const row = await query<{ xid: string; id: string }>(db).first(
    `select xid::text, id::text from event where run_id = :runId and ${isReadable}
     order by event.xid, event.id offset :before_it limit 1`,
    { runId, before: null, before_it: seq - 1 },
  );
  return { seq, ...(row ?? logEnd) };
}

/** Whether the run's end follows this number, even if not readable yet; log lines of a call may follow the end. */
export async function hasEndBehind(db: Db, runId: string, seq: number): Promise<boolean> {
  const row = await query<{ found: boolean }>(db).one(
    `select exists (select 1 from (select type from event where run_id = ? order by xid, id offset ?) behind
       where type = any (?)) as found`,
    [runId, seq, [...terminalEvents]],
  );
  return row.found;
}

/** After every event. */
const logEnd = { xid: '18446744073709551615', id: '9223372036854775807' };

/** A restored log keeps its order and numbers, but its transactions have other numbers. */
export async function confirmPosition(db: Db, runId: string, position: LogPosition): Promise<LogPosition> {
  const isThere = await query(db).some(
    'select 1 from event where run_id = ? and xid = ?::text::xid8 and id = ?::bigint',
    [runId, position.xid, position.id],
  );
  return isThere ? position : findPosition(db, runId, position.seq);
}

/**
 * @param before a horizon; null = now
 * @param after position to continue from; for a plain number the log is counted up to it
 */
export async function listEvents(
  db: Db,
  runId: string,
  { before, after, limit }: { before: string | null; after: number | LogPosition; limit: number },
): Promise<readonly NumberedEventRow[]> {
  const from = typeof after === 'number' ? await findPosition(db, runId, after) : after;
  const rows = await query<Omit<NumberedEventRow, 'seq'>>(db).all(
    `select run_id, at, type, step_id, item, attempt, data, xid::text, id::text
     from event where run_id = :runId and (xid, id) > (:xid::text::xid8, :id::bigint) and ${isReadable}
     order by event.xid, event.id limit :limit`,
    { runId, before, limit, xid: from.xid, id: from.id },
  );
  return rows.map((row, at) => ({ ...row, seq: from.seq + 1 + at }));
}

/**
 * New events of several runs, from one horizon to the next. Sorted by the column: an unqualified `xid` is the text
 * here.
 */
export function listNewEvents(
  db: Db,
  runIds: readonly string[],
  { from, to }: LogSpan,
): Promise<readonly (EventRow & Omit<LogPosition, 'seq'>)[]> {
  return query<EventRow & Omit<LogPosition, 'seq'>>(db).all(
    `select run_id, at, type, step_id, item, attempt, data, xid::text, id::text from event
     where run_id = any (?) and xid >= ?::text::xid8 and xid < ?::text::xid8 order by event.xid, event.id`,
    [[...runIds], from, to],
  );
}
