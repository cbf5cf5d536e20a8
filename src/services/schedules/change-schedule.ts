import type { JsonObject } from '../../contracts/primitives.ts';
import type { Schedule, ScheduleRequest } from '../../contracts/schedule.ts';
import { insertAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import {
  lockSchedule,
  type ScheduleKey,
  type ScheduleRow,
  updateSchedule,
} from '../../db/schedule/schedule.ts';
import { hasSqlState } from '../../db/sql-state.ts';
import { AppError } from '../../errors/app-error.ts';
import type { Caller } from '../access/caller.ts';
import { checkSchedule, type ScheduleCheck } from './check-schedule.ts';

export interface ChangeDependencies extends ScheduleCheck {
  /** Tells Temporal, and shows what is there then. */
  readonly tell: (key: ScheduleKey) => Promise<Schedule>;
}

export function scheduleNotFound(id: string): AppError {
  return new AppError('not_found', `there is no schedule ${id}`);
}

export function scheduleNameTaken(name: string): AppError {
  return new AppError(
    'state_conflict',
    `a schedule named ${name} exists; change that one or take another name`,
  );
}

export type ScheduleActor = Pick<Caller, 'project_id' | 'key_id'>;

interface ScheduleAct {
  readonly actor: string;
  readonly action: `schedule.${'created' | 'replaced' | 'paused' | 'resumed' | 'deleted'}`;
  /** What it is now, where that was given. */
  readonly body?: ScheduleRequest;
}

export function noteSchedule(
  trx: Db,
  { project_id, schedule_id }: ScheduleKey,
  { actor, action, body }: ScheduleAct,
): Promise<void> {
  const data: JsonObject =
    body === undefined ? {} : { name: body.name, pipeline: body.pipeline, cron: body.cron };
  return insertAudit(trx, { project_id, actor, action, subject: schedule_id, data });
}

interface ScheduleChange extends ScheduleKey, ScheduleAct {
  /** What becomes of the body; null = nothing. */
  readonly change: (row: ScheduleRow) => ScheduleRequest | null;
}

async function changeRow(db: Db, { change, ...asked }: ScheduleChange): Promise<void> {
  await db.transaction(async (trx) => {
    const row = await lockSchedule(trx, asked);
    if (row === undefined) throw scheduleNotFound(asked.schedule_id);
    const body = change(row);
    if (body === null) return;
    await updateSchedule(trx, asked.schedule_id, body);
    await noteSchedule(trx, asked, asked);
  });
}

export function createChangeSchedule({ tell, ...checks }: ChangeDependencies) {
  const { db } = checks;
  const setPaused = async (by: ScheduleActor, schedule_id: string, paused: boolean): Promise<Schedule> => {
    const key = { project_id: by.project_id, schedule_id };
    const act = { actor: by.key_id, action: paused ? 'schedule.paused' : 'schedule.resumed' } as const;
    const change = ({ body }: ScheduleRow) => (body.paused === paused ? null : { ...body, paused });
    await changeRow(db, { ...key, ...act, change });
    return tell(key);
  };
  return {
    /** @throws AppError as `create`, and `not_found` */
    replace: async (by: ScheduleActor, schedule_id: string, request: ScheduleRequest): Promise<Schedule> => {
      const key = { project_id: by.project_id, schedule_id };
      await checkSchedule(checks, by.project_id, request);
      const act = { actor: by.key_id, action: 'schedule.replaced', body: request } as const;
      await changeRow(db, { ...key, ...act, change: () => request }).catch((error: unknown) => {
        throw hasSqlState(error, 'unique_violation') ? scheduleNameTaken(request.name) : error;
      });
      return tell(key);
    },

    pause: (by: ScheduleActor, schedule_id: string) => setPaused(by, schedule_id, true),

    resume: (by: ScheduleActor, schedule_id: string) => setPaused(by, schedule_id, false),
  };
}
