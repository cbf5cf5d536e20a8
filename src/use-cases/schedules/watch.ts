/**
 * Accounts for every start of every schedule, so that none is missing without a word. A start whose catch-up window is
 * over has a run, or was skipped by the schedule's settings, or waits in Temporal for its turn or for a worker. Any
 * other was missed: it gets a run in state failed. After a long outage the latest missed start gets one, which counts
 * the others.
 */

import { nextStarts } from '@capstan/core/calendar/starts';
import type { Schedule } from '@capstan/core/contracts/schedule';
import { parseDuration } from '@capstan/core/duration';
import type { ServerCtx } from '../../context.ts';
import {
  findOpenRun,
  listSchedulesToWatch,
  listStartTimes,
  markWatched,
  noteMissed,
  noteSkip,
  type ScheduleRow,
  wasOpenAt,
} from '../../db/schedule.ts';
import { newId } from '../../parts/ids.ts';
import { countStarts, recordFruitlessStart } from './scheduled-runs.ts';

type WatchCtx = Pick<ServerCtx, 'db' | 'telemetry' | 'logger' | 'temporal'>;

/** How long a start may take beyond its catch-up window. */
const graceMs = 30_000;
const againMs = 30_000;
const answerMs = 5_000;
const batch = 100;
/** Starts of a schedule that are looked at together. */
const mostStarts = 1_000;

/** Policies whose starts Temporal keeps or drops while a run is open. */
const buffering: ReadonlySet<Schedule['overlap']> = new Set(['buffer_one', 'buffer_all', 'cancel_other']);

interface Verdict {
  readonly missed: readonly number[];
  readonly skipped: readonly number[];
  /** The first start that is not decided yet. */
  readonly open: number | null;
}

async function isWaiting({ db, temporal }: WatchCtx, row: ScheduleRow, start: number): Promise<boolean> {
  if (buffering.has(row.body.overlap) && (await findOpenRun(db, row)) !== undefined) return true;
  return temporal.schedules.isStarting(row, new Date(start), answerMs);
}

/** Decides on starts without a run, oldest first. @param pausedThere it is paused in Temporal */
async function judge(
  ctx: WatchCtx,
  row: ScheduleRow,
  { starts, pausedThere }: { readonly starts: readonly number[]; readonly pausedThere: boolean },
): Promise<Verdict> {
  const missed: number[] = [];
  const skipped: number[] = [];
  for (const start of starts) {
    if (await isWaiting(ctx, row, start)) return { missed, skipped, open: start };
    const isDropped = buffering.has(row.body.overlap) && (await wasOpenAt(ctx.db, row, new Date(start)));
    (pausedThere || isDropped ? skipped : missed).push(start);
  }
  return { missed, skipped, open: null };
}

/** The starts after `watched_until` whose time is over, and which have neither a run nor were skipped. */
async function listUnaccounted(
  { db }: WatchCtx,
  row: ScheduleRow,
  limit: number,
): Promise<readonly number[]> {
  const { cron, timezone } = row.body;
  const after = row.watched_until.getTime();
  const due = nextStarts(cron, { timezone, after, count: mostStarts }).filter((start) => start <= limit);
  const [last] = due.slice(-1);
  if (last === undefined) return [];
  const made = await listStartTimes(db, row.schedule_id, { after: row.watched_until, until: new Date(last) });
  const known = new Set(made.map((time) => time.getTime()));
  const skippedUntil = row.skipped_at?.getTime() ?? 0;
  return due.filter((start) => !known.has(start) && start > skippedUntil);
}

function toInstant(ms: number): string {
  return new Date(ms).toISOString();
}

interface StartAccount extends Pick<Verdict, 'missed' | 'skipped'> {
  /** Why starts were skipped. */
  readonly why: string;
}

async function record(
  ctx: WatchCtx,
  row: ScheduleRow,
  { missed, skipped, why }: StartAccount,
): Promise<void> {
  const { metrics } = ctx.telemetry;
  const [lastSkip, lastMiss] = [skipped.at(-1), missed.at(-1)];
  if (lastSkip !== undefined) {
    const gap = { schedule_id: row.schedule_id, gap_id: newId('gap') };
    await noteSkip(ctx.db, gap, { moments: skipped.map(toInstant), reason: why });
    countStarts(metrics, 'skipped', skipped.length);
  }
  if (lastMiss === undefined) return;
  const others = missed.length - 1;
  const more = others === 0 ? '' : `; nor did the ${others} before it`;
  const message = `it did not start within its catch-up window of ${row.body.catch_up}${more}: Temporal or all workers were away`;
  const error = { code: 'start_missed', message };
  const scheduled_at = toInstant(lastMiss);
  const reason = 'Temporal or all workers were away for longer than the catch-up window';
  const gap = { schedule_id: row.schedule_id, gap_id: newId('gap') };
  await noteMissed(ctx.db, gap, { moments: missed.map(toInstant), reason });
  await recordFruitlessStart(ctx, row, { scheduled_at, outcome: 'missed', error });
  countStarts(metrics, 'missed', others);
}

/** @returns how many starts were missed */
async function watchOne(ctx: WatchCtx, row: ScheduleRow, now: number): Promise<number> {
  const { cron, timezone, catch_up, paused, overlap } = row.body;
  const patienceMs = parseDuration(catch_up) + graceMs;
  const limit = now - patienceMs;
  const unaccounted = paused ? [] : await listUnaccounted(ctx, row, limit);
  const standing = unaccounted.length === 0 ? null : await ctx.temporal.schedules.standing(row, answerMs);
  const pause = standing?.paused ?? null;
  const verdict = await judge(ctx, row, { starts: unaccounted, pausedThere: pause !== null });
  const why =
    pause === null ? `its previous run was open, and overlap is ${overlap}` : `paused in Temporal: ${pause}`;
  await record(ctx, row, { ...verdict, why });
  const until = verdict.open === null ? Math.max(limit, row.watched_until.getTime()) : verdict.open - 1;
  const [next] = paused ? [] : nextStarts(cron, { timezone, after: until, count: 1 });
  const at = Math.max((next ?? now) + patienceMs, now + againMs);
  await markWatched(ctx.db, row, { until: new Date(until), at: new Date(at) });
  return verdict.missed.length;
}

/** One schedule that cannot be judged, as while Temporal does not answer, does not delay the others. */
export async function watchStarts(ctx: WatchCtx, now = Date.now()): Promise<number> {
  let missed = 0;
  for (const row of await listSchedulesToWatch(ctx.db, new Date(now), batch)) {
    missed += await watchOne(ctx, row, now).catch(async (err: unknown) => {
      ctx.logger.warn(
        { err, schedule_id: row.schedule_id },
        'the starts of a schedule are not accounted for yet',
      );
      await markWatched(ctx.db, row, { until: row.watched_until, at: new Date(now + againMs) });
      return 0;
    });
  }
  return missed;
}
