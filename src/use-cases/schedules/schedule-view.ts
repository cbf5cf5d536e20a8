import { nextStarts } from '@capstan/core/calendar/starts';
import type { Schedule } from '@capstan/core/contracts/schedule';
import type { TemporalStanding } from '../../clients/temporal/schedules.ts';
import type { Db } from '../../db/connect.ts';
import {
  type LastStartRow,
  listLastStarts,
  markScheduleForgotten,
  type ScheduleRow,
} from '../../db/schedule.ts';
import type { AskStanding } from '../../parts/delivery/schedule-standing.ts';

const shownTimes = 5;

export function isDelivered({ version, delivered_version }: ScheduleRow): boolean {
  return delivered_version >= version;
}

function toSkipped({ skips: count, skipped_at, skip_reason }: ScheduleRow): Schedule['skipped'] {
  if (skipped_at === null || skip_reason === null) return null;
  return { count, scheduled_at: skipped_at.toISOString(), reason: skip_reason };
}

function toLastStart(last: LastStartRow | undefined): Schedule['last_start'] {
  if (last === undefined) return null;
  const { scheduled_at, run_id, state, error } = last;
  return { scheduled_at: scheduled_at.toISOString(), run_id, state, error };
}

interface KnownStanding {
  /** Null: unknown. */
  readonly standing: TemporalStanding | null;
  readonly last: LastStartRow | undefined;
}

function toSchedule(row: ScheduleRow, { standing, last }: KnownStanding): Schedule {
  const { cron, timezone, paused } = row.body;
  const pausedThere = paused ? null : (standing?.paused ?? null);
  const isPaused = paused || pausedThere !== null;
  const next = isPaused ? [] : nextStarts(cron, { timezone, after: Date.now(), count: shownTimes });
  return {
    schedule_id: row.schedule_id,
    ...row.body,
    delivered: isDelivered(row),
    ...(pausedThere === null ? {} : { paused_in_temporal: pausedThere }),
    next_at: next.map((at) => new Date(at).toISOString()),
    last_start: toLastStart(last),
    skipped: toSkipped(row),
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  };
}

/** How long a view waits for Temporal. */
export const viewMs = 2_000;

/** A schedule that Temporal has forgotten is delivered again. */
async function showOne(
  { db, standing: ask, ms = viewMs }: ShowCtx,
  row: ScheduleRow,
  last: LastStartRow | undefined,
): Promise<Schedule> {
  if (!isDelivered(row)) return toSchedule(row, { standing: null, last });
  const standing = await ask(row, ms).catch(() => undefined);
  if (standing !== null) return toSchedule(row, { standing: standing ?? null, last });
  await markScheduleForgotten(db, row.schedule_id);
  return toSchedule({ ...row, delivered_version: 0 }, { standing: null, last });
}

interface ShowCtx {
  readonly db: Db;
  readonly standing: AskStanding;
  /** How long each answer of Temporal is waited for. Default: as long as a view does. */
  readonly ms?: number;
}

/** Shows each row with its last start, and whether Temporal has paused it. */
export async function showSchedules(ctx: ShowCtx, rows: readonly ScheduleRow[]): Promise<Schedule[]> {
  const starts = await listLastStarts(
    ctx.db,
    rows.map(({ schedule_id }) => schedule_id),
  );
  const lasts = new Map(starts.map((last) => [last.schedule_id, last]));
  return Promise.all(rows.map((row) => showOne(ctx, row, lasts.get(row.schedule_id))));
}
