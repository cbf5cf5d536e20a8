/** Schedules: the row is the truth, `version` grows with every change, `delivered_version` is what Temporal has taken. */
import type { ScheduleRequest } from '../../contracts/schedule.ts';
import type { Db } from '../connect.ts';

export interface ScheduleRow {
  readonly schedule_id: string;
  readonly project_id: string;
  /** Its name in Temporal, which stays whatever pipeline it starts later. */
  readonly workflow_id: string;
  readonly name: string;
  readonly body: ScheduleRequest;
  readonly version: number;
  readonly delivered_version: number;
  /** The id of the key by which Temporal holds it encrypted; '' = by none. */
  readonly payload_key: string;
  readonly deleted_at: Date | null;
  readonly created_by: string;
  readonly created_at: Date;
  readonly updated_at: Date;
}

export interface ScheduleKey {
  readonly project_id: string;
  readonly schedule_id: string;
}

interface Page {
  readonly after: string | null;
  readonly limit: number;
}

/** @returns undefined when the project has one of that name */
export async function insertSchedule(
  db: Db,
  {
    project_id,
    schedule_id,
    workflow_id,
    created_by,
  }: ScheduleKey & Pick<ScheduleRow, 'workflow_id' | 'created_by'>,
  body: ScheduleRequest,
): Promise<ScheduleRow | undefined> {
  const { rows } = await db.raw<{ rows: ScheduleRow[] }>(
    `insert into schedule (schedule_id, project_id, workflow_id, created_by, name, body) values (?, ?, ?, ?, ?, ?)
     on conflict (project_id, name) where deleted_at is null do nothing returning *`,
    [schedule_id, project_id, workflow_id, created_by, body.name, JSON.stringify(body)],
  );
  return rows[0];
}

/** Not those that were deleted. */
export async function readSchedule(db: Db, scheduleId: string): Promise<ScheduleRow | undefined> {
  const { rows } = await db.raw<{ rows: ScheduleRow[] }>(
    'select * from schedule where schedule_id = ? and deleted_at is null',
    [scheduleId],
  );
  return rows[0];
}

/** That nobody else changes until the transaction ends. */
export async function lockSchedule(
  trx: Db,
  { project_id, schedule_id }: ScheduleKey,
): Promise<ScheduleRow | undefined> {
  const { rows } = await trx.raw<{ rows: ScheduleRow[] }>(
    `select * from schedule where schedule_id = ? and project_id = ? and deleted_at is null for update`,
    [schedule_id, project_id],
  );
  return rows[0];
}

/** @throws a database error (23505) when the project has another one of that name */
export async function updateSchedule(
  trx: Db,
  scheduleId: string,
  body: ScheduleRequest,
): Promise<ScheduleRow | undefined> {
  const { rows } = await trx.raw<{ rows: ScheduleRow[] }>(
    `update schedule set name = ?, body = ?, version = version + 1, updated_at = clock_timestamp()
     where schedule_id = ? and deleted_at is null returning *`,
    [body.name, JSON.stringify(body), scheduleId],
  );
  return rows[0];
}

/** @returns whether there was one */
export async function deleteSchedule(db: Db, { project_id, schedule_id }: ScheduleKey): Promise<boolean> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `update schedule set deleted_at = clock_timestamp(), updated_at = clock_timestamp(), version = version + 1
     where schedule_id = ? and project_id = ? and deleted_at is null`,
    [schedule_id, project_id],
  );
  return rowCount > 0;
}

/** By name. */
export async function listSchedules(
  db: Db,
  projectId: string,
  { after, limit }: Page,
): Promise<ScheduleRow[]> {
  const { rows } = await db.raw<{ rows: ScheduleRow[] }>(
    `select * from schedule where project_id = ? and deleted_at is null and name > coalesce(?, '')
     order by name limit ?`,
    [projectId, after, limit],
  );
  return rows;
}

/** The run of a start that was repeated, or that another start has made; its end is told to that one. */
export async function findScheduledRun(
  db: Db,
  start: { readonly schedule_id: string; readonly scheduled_at: string; readonly workflow_id: string },
): Promise<{ readonly run_id: string; readonly is_untold: boolean } | undefined> {
  const { rows } = await db.raw<{ rows: { run_id: string; is_untold: boolean }[] }>(
    `select run_id, finished_at is null and parent_workflow_id = :workflow_id as is_untold from run
     where schedule_id = :schedule_id and scheduled_at = :scheduled_at`,
    { ...start },
  );
  return rows[0];
}
