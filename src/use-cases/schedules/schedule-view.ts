/**
 * Shows a schedule as the API does, with its next starts by the rule that Temporal's copy is planned by, and whether it
 * is paused there. Temporal is asked about each schedule separately, so a process has few such requests open, however
 * many requests list schedules. An answer is kept for some seconds; a change of the schedule makes another version,
 * which is asked about again.
 */

import { LRUCache } from 'lru-cache';
import type { TemporalSchedules, TemporalStanding } from '../../clients/temporal/schedules.ts';
import type { Schedule } from '../../contracts/schedule.ts';
import { nextStarts } from '../../core/calendar/starts.ts';
import type { Db } from '../../db/connect.ts';
import {
  type LastStartRow,
  listLastStarts,
  markScheduleForgotten,
  type ScheduleRow,
} from '../../db/schedule.ts';

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
const viewMs = 2_000;

/** A schedule that Temporal has forgotten is delivered again. */
async function showOne(
  { db, standing: ask }: ShowCtx,
  row: ScheduleRow,
  last: LastStartRow | undefined,
): Promise<Schedule> {
  if (!isDelivered(row)) return toSchedule(row, { standing: null, last });
  const standing = await ask(row, viewMs).catch(() => undefined);
  if (standing !== null) return toSchedule(row, { standing: standing ?? null, last });
  await markScheduleForgotten(db, row.schedule_id);
  return toSchedule({ ...row, delivered_version: 0 }, { standing: null, last });
}

interface ShowCtx {
  readonly db: Db;
  readonly standing: AskStanding;
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

/** As `TemporalSchedules.standing`. */
export type AskStanding = (row: ScheduleRow, ms: number) => Promise<TemporalStanding | null>;

const askedAtOnce = 8;
const mostKept = 10_000;
const keptMs = 10_000;

interface StandingOptions {
  readonly now?: () => number;
}

/**
 * Asks how schedules stand in Temporal, for lists. It limits the open requests to Temporal for all callers together and
 * keeps an answer for some seconds.
 */
export function createAskStanding(
  schedules: Pick<TemporalSchedules, 'standing'>,
  { now = Date.now }: StandingOptions = {},
): AskStanding {
  const kept = new LRUCache<
    string,
    { readonly at: number; readonly answer: Promise<TemporalStanding | null> }
  >({
    max: mostKept,
  });
  const waiting: (() => void)[] = [];
  let asked = 0;

  /** Fails when its turn does not come in time. */
  const ask: AskStanding = async (row, ms) => {
    const began = now();
    if (asked >= askedAtOnce) await new Promise<void>((resolve) => waiting.push(resolve));
    asked += 1;
    try {
      const left = ms - (now() - began);
      if (left <= 0) throw new Error('Temporal was not asked in time');
      return await schedules.standing(row, left);
    } finally {
      asked -= 1;
      waiting.shift()?.();
    }
  };

  return async (row, ms) => {
    const key = `${row.schedule_id} ${row.version}`;
    const found = kept.get(key);
    if (found !== undefined && now() - found.at < keptMs) return found.answer;
    const answer = ask(row, ms);
    kept.set(key, { at: now(), answer });
    const isWrong = (): unknown => kept.get(key)?.answer === answer && kept.delete(key);
    answer.then((standing) => standing === null && isWrong(), isWrong); // the next caller asks again
    return answer;
  };
}
