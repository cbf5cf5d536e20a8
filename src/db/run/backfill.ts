/** Backfills of schedules: a range, its pace, and how far it is. Their runs name them. */
import type { BackfillState } from '@capstan/core/contracts/schedule';
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';

export interface BackfillRow {
  readonly backfill_id: string;
  readonly project_id: string;
  readonly schedule_id: string;
  readonly from_at: Date;
  readonly until_at: Date;
  readonly at_once: number;
  readonly state: BackfillState;
  /** Of the calendar in the range. */
  readonly moments: number;
  /** Those that were looked at; of them, those that had a run; and the last of them. */
  readonly passed: number;
  readonly existing: number;
  readonly passed_until: Date | null;
  readonly waits: string | null;
  readonly created_by: string;
  readonly created_at: Date;
  readonly finished_at: Date | null;
}

/** With its runs by how they are. */
export interface BackfillView extends BackfillRow {
  readonly open: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly cancelled: number;
}

const view = `select b.*, r.* from backfill b cross join lateral (
  select count(*) filter (where finished_at is null)::int as open,
    count(*) filter (where state = 'succeeded')::int as succeeded,
    count(*) filter (where state = 'failed')::int as failed,
    count(*) filter (where state = 'cancelled')::int as cancelled
  from run where backfill_id = b.backfill_id) r`;

export type NewBackfill = Pick<
  BackfillRow,
  'backfill_id' | 'project_id' | 'schedule_id' | 'at_once' | 'moments' | 'created_by'
> & { readonly from_at: string; readonly until_at: string };

export async function insertBackfill(trx: Db, backfill: NewBackfill): Promise<void> {
  await trx('backfill').insert(backfill);
}

interface BackfillOf {
  readonly schedule_id: string;
  readonly backfill_id: string;
}

export function findBackfill(
  db: Db,
  { schedule_id, backfill_id }: BackfillOf,
): Promise<BackfillView | undefined> {
  return query<BackfillView>(db).first(`${view} where b.schedule_id = ? and b.backfill_id = ?`, [
    schedule_id,
    backfill_id,
  ]);
}

/** Newest first. */
export function listBackfills(
  db: Db,
  scheduleId: string,
  { after, limit }: { readonly after: string | null; readonly limit: number },
): Promise<readonly BackfillView[]> {
  return query<BackfillView>(db).all(
    `${view} where b.schedule_id = :scheduleId and (:after::text is null or b.backfill_id < :after)
     order by b.backfill_id desc limit :limit`,
    { scheduleId, after, limit },
  );
}

/** Those that have moments or open runs left, oldest first. */
export function listRunningBackfills(db: Db, limit: number): Promise<readonly BackfillView[]> {
  return query<BackfillView>(db).all(`${view} where b.state = 'running' order by b.backfill_id limit ?`, [
    limit,
  ]);
}

/** Ends one that is running. @returns whether it was */
export function endBackfill(
  db: Db,
  backfillId: string,
  state: Exclude<BackfillState, 'running'>,
): Promise<boolean> {
  return query(db).wrote(
    `update backfill set state = ?, waits = null, finished_at = clock_timestamp() where backfill_id = ? and state = 'running'`,
    [state, backfillId],
  );
}

/**
 * Passes the next moment, and locks the backfill until the transaction ends.
 * @returns false if it was ended meanwhile, or has passed it
 */
export function passMoment(
  trx: Db,
  { backfill_id }: Pick<BackfillRow, 'backfill_id'>,
  { at, existing }: { readonly at: Date; readonly existing: boolean },
): Promise<boolean> {
  return query(trx).wrote(
    `update backfill set passed = passed + 1, existing = existing + :existing::int, passed_until = :at, waits = null
     where backfill_id = :backfill_id and state = 'running' and (passed_until is null or passed_until < :at)`,
    { backfill_id, at, existing: existing ? 1 : 0 },
  );
}

export async function noteWaiting(db: Db, backfillId: string, waits: string): Promise<void> {
  await db.raw('update backfill set waits = ? where backfill_id = ? and waits is distinct from ?', [
    waits,
    backfillId,
    waits,
  ]);
}

/** Whether a moment has a run; one that was only missed does not count. */
export function hasRunAt(db: Db, scheduleId: string, at: Date): Promise<boolean> {
  return query(db).some(
    `select 1 from run where schedule_id = ? and scheduled_at = ? and error ->> 'code' is distinct from 'start_missed'`,
    [scheduleId, at],
  );
}
