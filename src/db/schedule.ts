/**
 * Schedules: the row is the truth, `version` grows with every change, and `delivered_version` is the version that
 * Temporal has accepted. Delivery is retried until they are equal.
 */

import type { Failure } from '@capstan/core/contracts/primitives';
import type { RunState } from '@capstan/core/contracts/run';
import type { ScheduleRequest } from '@capstan/core/contracts/schedule';
import type { Db } from './connect.ts';
import { tryLock } from './locks.ts';
import { type DeliveredPage, purgeOld, query, toJson } from './statements.ts';

export interface ScheduleRow {
  readonly schedule_id: string;
  readonly project_id: string;
  /** Its id in Temporal, which stays even if it later starts another pipeline. */
  readonly workflow_id: string;
  readonly name: string;
  readonly body: ScheduleRequest;
  readonly version: number;
  readonly delivered_version: number;
  /** Id of the key with which Temporal's copy is encrypted; '': not encrypted. */
  readonly payload_key: string;
  readonly deleted_at: Date | null;
  readonly created_by: string;
  readonly created_at: Date;
  readonly updated_at: Date;
  /** When Temporal accepted it last. */
  readonly delivered_at: Date | null;
  /** The starts up to this moment are accounted for. */
  readonly watched_until: Date;
  /** When later starts are looked at. */
  readonly watch_at: Date;
  /** Starts that made no run because of its settings, and the latest of them. */
  readonly skips: number;
  readonly skipped_at: Date | null;
  readonly skip_reason: string | null;
}

export interface ScheduleKey {
  readonly project_id: string;
  readonly schedule_id: string;
}

interface Page {
  readonly after: string | null;
  readonly limit: number;
}

/** @returns undefined if the project has a schedule of that name */
export function insertSchedule(
  db: Db,
  {
    project_id,
    schedule_id,
    workflow_id,
    created_by,
  }: ScheduleKey & Pick<ScheduleRow, 'workflow_id' | 'created_by'>,
  body: ScheduleRequest,
): Promise<ScheduleRow | undefined> {
  return query<ScheduleRow>(db).first(
    `insert into schedule (schedule_id, project_id, workflow_id, created_by, name, body) values (?, ?, ?, ?, ?, ?)
     on conflict (project_id, name) where deleted_at is null do nothing returning *`,
    [schedule_id, project_id, workflow_id, created_by, body.name, toJson(body)],
  );
}

/** Ignores deleted schedules. */
export function readSchedule(db: Db, scheduleId: string): Promise<ScheduleRow | undefined> {
  return query<ScheduleRow>(db).first('select * from schedule where schedule_id = ? and deleted_at is null', [
    scheduleId,
  ]);
}

/** Locks the schedule until the transaction ends. */
export function lockSchedule(
  trx: Db,
  { project_id, schedule_id }: ScheduleKey,
): Promise<ScheduleRow | undefined> {
  return query<ScheduleRow>(trx).first(
    `select * from schedule where schedule_id = ? and project_id = ? and deleted_at is null for update`,
    [schedule_id, project_id],
  );
}

/** @throws a database error (23505) if the project has another schedule of that name */
export function updateSchedule(
  trx: Db,
  scheduleId: string,
  body: ScheduleRequest,
): Promise<ScheduleRow | undefined> {
  return query<ScheduleRow>(trx).first(
    `update schedule set name = ?, body = ?, version = version + 1, updated_at = clock_timestamp(),
       watched_until = clock_timestamp(), watch_at = clock_timestamp()
     where schedule_id = ? and deleted_at is null returning *`,
    [body.name, toJson(body), scheduleId],
  );
}

/** @returns whether there was one */
export function deleteSchedule(db: Db, { project_id, schedule_id }: ScheduleKey): Promise<boolean> {
  return query(db).wrote(
    `update schedule set deleted_at = clock_timestamp(), updated_at = clock_timestamp(), version = version + 1
     where schedule_id = ? and project_id = ? and deleted_at is null`,
    [schedule_id, project_id],
  );
}

/** By name. */
export function listSchedules(db: Db, projectId: string, { after, limit }: Page): Promise<ScheduleRow[]> {
  return query<ScheduleRow>(db).all(
    `select * from schedule where project_id = ? and deleted_at is null and name > coalesce(?, '')
     order by name limit ?`,
    [projectId, after, limit],
  );
}

/** Finds the run of this scheduled time. `is_untold`: it is open, and its end will be reported to this start. */
export function findScheduledRun(
  db: Db,
  start: { readonly schedule_id: string; readonly scheduled_at: string; readonly workflow_id: string },
): Promise<{ readonly run_id: string; readonly is_untold: boolean } | undefined> {
  return query<{ run_id: string; is_untold: boolean }>(db).first(
    `select run_id, finished_at is null and parent_workflow_id = :workflow_id as is_untold from run
     where schedule_id = :schedule_id and scheduled_at = :scheduled_at`,
    { ...start },
  );
}

/** Finds a run of the schedule that has not ended, other than those of backfills. The index on open runs of a project bounds the search. */
export async function findOpenRun(
  db: Db,
  { project_id, schedule_id }: ScheduleKey,
): Promise<string | undefined> {
  const row = await query<{ run_id: string }>(db).first(
    `select run_id from run where project_id = ? and finished_at is null and schedule_id = ? and backfill_id is null
     order by run_id limit 1`,
    [project_id, schedule_id],
  );
  return row?.run_id;
}

export interface LastStartRow {
  readonly schedule_id: string;
  readonly scheduled_at: Date;
  readonly run_id: string;
  readonly state: RunState;
  readonly error: Failure | null;
}

/** The latest start of each schedule that has one. */
export function listLastStarts(db: Db, scheduleIds: readonly string[]): Promise<LastStartRow[]> {
  return query<LastStartRow>(db).all(
    `select s.schedule_id, last.* from unnest(?::text[]) s (schedule_id) cross join lateral (
       select r.scheduled_at, r.run_id, r.state, r.error from run r
       where r.schedule_id = s.schedule_id order by r.scheduled_at desc limit 1) last`,
    [[...scheduleIds]],
  );
}

/** Schedules of which a start is to be accounted for. */
export function listSchedulesToWatch(db: Db, now: Date, limit: number): Promise<ScheduleRow[]> {
  return query<ScheduleRow>(db).all(
    'select * from schedule where deleted_at is null and watch_at <= ? order by watch_at limit ?',
    [now, limit],
  );
}

/** The scheduled times of runs. */
export async function listStartTimes(
  db: Db,
  scheduleId: string,
  { after, until }: { readonly after: Date; readonly until: Date },
): Promise<Date[]> {
  const rows = await query<{ scheduled_at: Date }>(db).all(
    'select scheduled_at from run where schedule_id = ? and scheduled_at > ? and scheduled_at <= ?',
    [scheduleId, after, until],
  );
  return rows.map(({ scheduled_at }) => scheduled_at);
}

/** Whether the run before a moment was still open then. */
export async function wasOpenAt(db: Db, { schedule_id }: ScheduleKey, at: Date): Promise<boolean> {
  const row = await query<{ was_open: boolean }>(db).first(
    `select coalesce(finished_at > ?, true) as was_open from run
     where schedule_id = ? and scheduled_at < ? and backfill_id is null
     order by scheduled_at desc limit 1`,
    [at, schedule_id, at],
  );
  return row?.was_open === true;
}

/** Does nothing if the schedule was changed meanwhile: it is looked at again from then on. */
export async function markWatched(
  db: Db,
  { schedule_id, version }: Pick<ScheduleRow, 'schedule_id' | 'version'>,
  { until, at }: { readonly until: Date; readonly at: Date },
): Promise<void> {
  await db.raw(
    'update schedule set watched_until = ?, watch_at = ? where schedule_id = ? and version = ? and deleted_at is null',
    [until, at, schedule_id, version],
  );
}

export interface Skip {
  /** RFC 3339, oldest first, at least one. */
  readonly moments: readonly string[];
  readonly reason: string;
}

const shownMoments = 100;

/**
 * Counts skipped starts, and adds them to the history.
 * @returns false if they were counted before, or the schedule is gone
 */
export async function noteSkip(
  db: Db,
  { schedule_id, gap_id }: Pick<ScheduleKey, 'schedule_id'> & { readonly gap_id: string },
  { moments, reason }: Skip,
): Promise<boolean> {
  const scheduled_at = moments.at(-1) ?? null;
  const shown = moments.slice(0, shownMoments);
  return query(db).wrote(
    `with counted as (
       update schedule set skips = skips + :starts, skipped_at = :scheduled_at, skip_reason = :reason
       where schedule_id = :schedule_id and (skipped_at is null or skipped_at < :scheduled_at) returning schedule_id
     )
     insert into schedule_gap (gap_id, schedule_id, outcome, reason, count, moments)
     select :gap_id, schedule_id, 'skipped', :reason, :starts, :shown::timestamptz[] from counted`,
    { schedule_id, gap_id, scheduled_at, reason, starts: moments.length, shown },
  );
}

/** Adds missed starts to the history. */
export async function noteMissed(
  db: Db,
  { schedule_id, gap_id }: Pick<ScheduleKey, 'schedule_id'> & { readonly gap_id: string },
  { moments, reason }: Skip,
): Promise<void> {
  await db.raw(
    `insert into schedule_gap (gap_id, schedule_id, outcome, reason, count, moments)
     select :gap_id, schedule_id, 'missed', :reason, :count, :shown::timestamptz[] from schedule
     where schedule_id = :schedule_id`,
    { schedule_id, gap_id, reason, count: moments.length, shown: moments.slice(0, shownMoments) },
  );
}

export interface GapRow {
  readonly gap_id: string;
  readonly outcome: 'skipped' | 'missed';
  readonly reason: string;
  readonly count: number;
  readonly moments: readonly Date[];
  readonly created_at: Date;
}

/** Newest first. */
export function listGaps(db: Db, scheduleId: string, { after, limit }: Page): Promise<readonly GapRow[]> {
  return query<GapRow>(db).all(
    `select gap_id, outcome, reason, count, moments, created_at from schedule_gap
     where schedule_id = :scheduleId and (:after::text is null or gap_id < :after) order by gap_id desc limit :limit`,
    { scheduleId, after, limit },
  );
}

/** Deletes the history after 90 days. @returns how many */
export function purgeGaps(db: Db): Promise<number> {
  return purgeOld(db, { table: 'schedule_gap', hours: 2_160 });
}

/** Schedules with changes that Temporal has not accepted yet. */
export async function listUndeliveredSchedules(
  db: Db,
  olderThanMs: number,
  limit: number,
): Promise<string[]> {
  const rows = await query<{ schedule_id: string }>(db).all(
    `select schedule_id from schedule where delivered_version < version
       and updated_at < clock_timestamp() - ? * interval '1 millisecond'
     order by updated_at limit ?`,
    [olderThanMs, limit],
  );
  return rows.map(({ schedule_id }) => schedule_id);
}

/** Schedules whose copy in Temporal is encrypted with another key than this one, or not at all. */
export async function listUnderOtherKeys(db: Db, payloadKey: string, limit: number): Promise<string[]> {
  const rows = await query<{ schedule_id: string }>(db).all(
    `select schedule_id from schedule where deleted_at is null and delivered_version >= version
       and (payload_key < :payloadKey or payload_key > :payloadKey) limit :limit`,
    { payloadKey, limit },
  );
  return rows.map(({ schedule_id }) => schedule_id);
}

const staleDays = 30;
const isStale = `deleted_at is null and delivered_at < clock_timestamp() - interval '${staleDays} days'`;

/** Schedules whose starts were planned long ago. */
export async function listOldPlans(db: Db, limit: number): Promise<string[]> {
  const rows = await query<{ schedule_id: string }>(db).all(
    `select schedule_id from schedule where ${isStale} order by delivered_at limit ?`,
    [limit],
  );
  return rows.map(({ schedule_id }) => schedule_id);
}

/** Locks the delivery of the schedule until the transaction ends. @returns false if another process delivers it */
export function tryScheduleTurn(trx: Db, scheduleId: string): Promise<boolean> {
  return tryLock(trx, 'schedule', scheduleId);
}

/** Reads the schedule, even if deleted, if Temporal's copy is outdated, old, or encrypted with another key. */
export function readUndeliveredSchedule(
  db: Db,
  scheduleId: string,
  payloadKey: string,
): Promise<ScheduleRow | undefined> {
  return query<ScheduleRow>(db).first(
    `select * from schedule where schedule_id = ?
       and (delivered_version < version or deleted_at is null and payload_key <> ? or ${isStale})`,
    [scheduleId, payloadKey],
  );
}

/** Marks a schedule as delivered; deletes the row of a deleted one. */
export async function markScheduleDelivered(
  db: Db,
  { schedule_id, version, deleted_at }: ScheduleRow,
  payloadKey: string,
): Promise<void> {
  if (deleted_at === null) {
    await db.raw(
      `update schedule set delivered_version = ?, payload_key = ?, delivered_at = clock_timestamp()
       where schedule_id = ?`,
      [version, payloadKey, schedule_id],
    );
  } else await db('schedule').where({ schedule_id }).delete();
}

/** Temporal has lost the schedule: it must be delivered again. */
export async function markScheduleForgotten(db: Db, scheduleId: string): Promise<void> {
  await db.raw('update schedule set delivered_version = 0 where schedule_id = ?', [scheduleId]);
}

/** Lists schedules that Temporal accepted at least `olderThanMs` ago, by id, after `after`. */
export function listDeliveredSchedules(
  db: Db,
  { after, olderThanMs, limit }: DeliveredPage,
): Promise<readonly Pick<ScheduleRow, 'schedule_id' | 'workflow_id'>[]> {
  return query<Pick<ScheduleRow, 'schedule_id' | 'workflow_id'>>(db).all(
    `select schedule_id, workflow_id from schedule
     where delivered_version >= version and deleted_at is null
       and updated_at < clock_timestamp() - ? * interval '1 millisecond' and schedule_id > ? order by schedule_id limit ?`,
    [olderThanMs, after, limit],
  );
}
