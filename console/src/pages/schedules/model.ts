/** Schedules in words, and the request of their form. */
import type { Json } from '../../../../src/contracts/primitives.ts';
import type { RunSummary } from '../../../../src/contracts/run.ts';
import type { OverlapPolicy, Schedule } from '../../../../src/contracts/schedule.ts';
import { nextStarts } from '../../../../src/core/calendar/starts.ts';

export const overlapWords: Readonly<Record<OverlapPolicy, string>> = {
  skip: 'skip the start',
  buffer_one: 'start once afterwards',
  buffer_all: 'start as often afterwards',
  cancel_other: 'cancel that run and start',
  allow_all: 'start beside it',
};

const shownStarts = 3;

export interface StartsPreview {
  /** RFC 3339 */
  readonly starts: readonly string[];
  /** The reason why there are none. */
  readonly fault: string | null;
}

export function previewStarts(cron: string, timezone: string, now: number): StartsPreview {
  try {
    const starts = nextStarts(cron, { timezone, after: now, count: shownStarts });
    return { starts: starts.map((at) => new Date(at).toISOString()), fault: null };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { starts: [], fault: error.message };
  }
}

/** @param field the form's values, by name; `choice` is `alias NAME`, `version V`, or empty for the latest */
export function toScheduleRequest(
  field: (name: string) => string,
  { pipeline, job }: { readonly pipeline: string; readonly job: Json },
): object {
  const [kind = '', ...name] = field('choice').split(' ');
  const budget = field('budget');
  return {
    name: field('name'),
    cron: field('cron'),
    timezone: field('timezone'),
    overlap: field('overlap'),
    catch_up: field('catch_up'),
    pipeline,
    job,
    ...(kind === '' ? {} : { [kind]: name.join(' ') }),
    ...(budget === '' ? {} : { budget_ceiling_usd: Number(budget) }),
  };
}

const dayMs = 86_400_000;
/** A start may be late by up to this. */
const graceMs = 120_000;
const mostStarts = 100;

type Started = Pick<RunSummary, 'created_at'>;
type TimedSchedule = Pick<Schedule, 'cron' | 'timezone' | 'paused' | 'updated_at'>;

/** Empty for a zone that this browser does not know. */
function startsSince(
  { cron, timezone }: Pick<TimedSchedule, 'cron' | 'timezone'>,
  since: number,
): readonly number[] {
  try {
    return nextStarts(cron, { timezone, after: since, count: mostStarts });
  } catch (error) {
    if (error instanceof RangeError) return [];
    throw error;
  }
}

/**
 * `2 of 24 starts in the last 24 h made no run`; null when all did, or while it is paused. Starts that the overlap
 * policy suppressed count too.
 * @param runs newest first, as many as were requested
 */
export function describeMissed(
  schedule: TimedSchedule,
  runs: readonly Started[],
  now: number,
): string | null {
  if (schedule.paused) return null;
  const oldest = runs.length < mostStarts / 2 ? 0 : Date.parse(runs.at(-1)?.created_at ?? '');
  const since = Math.max(now - dayMs, Date.parse(schedule.updated_at), oldest);
  const { cron, timezone } = schedule;
  const starts = startsSince({ cron, timezone }, since).filter((at) => at <= now - graceMs);
  const made = runs.map(({ created_at }) => Date.parse(created_at));
  const missed = starts.filter((start, index) => {
    const until = starts[index + 1] ?? now;
    return !made.some((at) => at >= start - 1_000 && at < until);
  });
  return missed.length === 0
    ? null
    : `${missed.length} of ${starts.length} starts in the last 24 h made no run`;
}
