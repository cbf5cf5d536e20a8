/** Changes of schedules that Temporal has not taken yet: the row is the truth, delivering it is repeated. */
import type { Db } from '../connect.ts';
import type { ScheduleRow } from './schedule.ts';

export async function listUndeliveredSchedules(
  db: Db,
  olderThanMs: number,
  limit: number,
): Promise<string[]> {
  const { rows } = await db.raw<{ rows: { schedule_id: string }[] }>(
    `select schedule_id from schedule where delivered_version < version
       and updated_at < clock_timestamp() - ? * interval '1 millisecond'
     order by updated_at limit ?`,
    [olderThanMs, limit],
  );
  return rows.map(({ schedule_id }) => schedule_id);
}

/** Those that Temporal holds under another payload key than this one, or under none. */
export async function listUnderOtherKeys(db: Db, payloadKey: string, limit: number): Promise<string[]> {
  const { rows } = await db.raw<{ rows: { schedule_id: string }[] }>(
    `select schedule_id from schedule where deleted_at is null and delivered_version >= version
       and (payload_key < :payloadKey or payload_key > :payloadKey) limit :limit`,
    { payloadKey, limit },
  );
  return rows.map(({ schedule_id }) => schedule_id);
}

/** Until the transaction ends nobody else delivers it. @returns false when somebody does */
export async function tryScheduleTurn(trx: Db, scheduleId: string): Promise<boolean> {
  const { rows } = await trx.raw<{ rows: { held: boolean }[] }>(
    `select pg_try_advisory_xact_lock(hashtextextended('schedule ' || ?, 0)) as held`,
    [scheduleId],
  );
  return rows[0]?.held === true;
}

/** What Temporal does not know of it yet, deleted or not, or holds under another payload key. */
export async function readUndeliveredSchedule(
  db: Db,
  scheduleId: string,
  payloadKey: string,
): Promise<ScheduleRow | undefined> {
  const { rows } = await db.raw<{ rows: ScheduleRow[] }>(
    `select * from schedule where schedule_id = ?
       and (delivered_version < version or deleted_at is null and payload_key <> ?)`,
    [scheduleId, payloadKey],
  );
  return rows[0];
}

/** Marks a schedule as delivered; the row of a deleted one goes. */
export async function markScheduleDelivered(
  db: Db,
  { schedule_id, version, deleted_at }: ScheduleRow,
  payloadKey: string,
): Promise<void> {
  if (deleted_at === null) {
    await db.raw('update schedule set delivered_version = ?, payload_key = ? where schedule_id = ?', [
      version,
      payloadKey,
      schedule_id,
    ]);
  } else await db('schedule').where({ schedule_id }).delete();
}

/** Temporal has lost it: it is to be told again. */
export async function markScheduleForgotten(db: Db, scheduleId: string): Promise<void> {
  await db.raw('update schedule set delivered_version = 0 where schedule_id = ?', [scheduleId]);
}

/** By id, after `after`: those that Temporal took so long ago. */
export async function listDeliveredSchedules(
  db: Db,
  {
    after,
    olderThanMs,
    limit,
  }: { readonly after: string; readonly olderThanMs: number; readonly limit: number },
): Promise<readonly Pick<ScheduleRow, 'schedule_id' | 'workflow_id'>[]> {
  const { rows } = await db.raw<{ rows: Pick<ScheduleRow, 'schedule_id' | 'workflow_id'>[] }>(
    `select schedule_id, workflow_id from schedule
     where delivered_version >= version and deleted_at is null
       and updated_at < clock_timestamp() - ? * interval '1 millisecond' and schedule_id > ? order by schedule_id limit ?`,
    [olderThanMs, after, limit],
  );
  return rows;
}
