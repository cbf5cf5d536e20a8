/**
 * Reading the log of runs. A reader sees events of transactions that ended before the oldest one still open, in
 * the order (xid, id): a prefix of that order never changes, so a position in it is the event's number.
 */
import type { EventType } from '../../contracts/event.ts';
import type { Json } from '../../contracts/primitives.ts';
import type { Db } from '../connect.ts';

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

export interface NumberedEventRow extends EventRow {
  readonly seq: number;
}

/** Where the readable part of the log ends; every event before it is readable. */
export async function readHorizon(db: Db): Promise<string> {
  const { rows } = await db.raw<{ rows: { horizon: string }[] }>(
    'select pg_snapshot_xmin(pg_current_snapshot())::text as horizon',
  );
  return rows[0]?.horizon ?? '0';
}

/** @param before a horizon; null = now @param after number of the last event already read */
export async function listEvents(
  db: Db,
  runId: string,
  { before, after, limit }: { before: string | null; after: number; limit: number },
): Promise<readonly NumberedEventRow[]> {
  const { rows } = await db.raw<{ rows: NumberedEventRow[] }>(
    `select * from (
       select run_id, at, type, step_id, item, attempt, data, row_number() over (order by xid, id)::int as seq
       from event where run_id = :runId
         and xid < coalesce(:before::text::xid8, pg_snapshot_xmin(pg_current_snapshot()))
     ) numbered where seq > :after order by seq limit :limit`,
    { runId, before, after, limit },
  );
  return rows;
}

/** New events of several runs, from one horizon to the next. Sorted by the column: a bare `xid` is the text here. */
export async function listNewEvents(
  db: Db,
  runIds: readonly string[],
  from: string,
  to: string,
): Promise<readonly (EventRow & { readonly xid: string })[]> {
  const { rows } = await db.raw<{ rows: (EventRow & { xid: string })[] }>(
    `select run_id, at, type, step_id, item, attempt, data, xid::text from event
     where run_id = any (?) and xid >= ?::text::xid8 and xid < ?::text::xid8 order by event.xid, id`,
    [[...runIds], from, to],
  );
  return rows;
}
