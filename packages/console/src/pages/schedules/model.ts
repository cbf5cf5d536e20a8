/** Schedules in words, and the request of their form. */

import { addDays, dayStart } from '@capstan/core/calendar/days';
import { nextStarts } from '@capstan/core/calendar/starts';
import type { Json } from '@capstan/core/contracts/primitives';
import type {
  Backfill,
  BackfillRequest,
  BackfillState,
  OverlapPolicy,
  Schedule,
  ScheduleGap,
} from '@capstan/core/contracts/schedule';
import { readChoice } from '../../form/target-model.ts';
import { formatMoment } from '../../shared/format.ts';

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

/** @param field the form's values, by name */
export function toScheduleRequest(
  field: (name: string) => string,
  { pipeline, job }: { readonly pipeline: string; readonly job: Json },
): object {
  const budget = field('budget');
  return {
    name: field('name'),
    cron: field('cron'),
    timezone: field('timezone'),
    overlap: field('overlap'),
    catch_up: field('catch_up'),
    pipeline,
    job,
    ...readChoice(field('choice')),
    ...(budget === '' ? {} : { budget_ceiling_usd: Number(budget) }),
  };
}

/** `3 starts were skipped, the latest on …: why`; null: none. */
export function describeSkipped({
  skipped,
  timezone,
}: Pick<Schedule, 'skipped' | 'timezone'>): string | null {
  if (skipped === null) return null;
  const { count, scheduled_at, reason } = skipped;
  const starts = count === 1 ? '1 start was' : `${count} starts were`;
  return `${starts} skipped, the latest of ${formatMoment(scheduled_at, timezone)}: ${reason}`;
}

export interface BackfillForm {
  /** `2026-01-31`, a date of the schedule's zone. */
  readonly from: string;
  /** The last date, which counts as a whole up to now. */
  readonly until: string;
  readonly atOnce: number;
}

export function toBackfillRequest(
  { from, until, atOnce }: BackfillForm,
  timezone: string,
  now: number,
): BackfillRequest {
  const end = dayStart(addDays(until, 1), timezone) - 1;
  // A date that has not begun is refused by the server.
  const isBegun = dayStart(until, timezone) <= now;
  return {
    from: new Date(dayStart(from, timezone)).toISOString(),
    until: new Date(isBegun ? Math.min(end, now) : end).toISOString(),
    at_once: atOnce,
  };
}

const backfillStates: Readonly<Record<BackfillState, string>> = {
  running: 'fills back',
  done: 'done',
  cancelled: 'cancelled',
};

/** `fills back: 4 of 31 moments; 2 open, 1 failed; 3 moments had a run before`. */
export function describeBackfill({ state, moments, left, runs, existing }: BackfillProgress): string {
  const ends = [
    ...(runs.open === 0 ? [] : [`${runs.open} open`]),
    ...(runs.failed === 0 ? [] : [`${runs.failed} failed`]),
    ...(runs.cancelled === 0 ? [] : [`${runs.cancelled} cancelled`]),
  ].join(', ');
  return [
    `${backfillStates[state]}: ${moments - left} of ${moments === 1 ? '1 moment' : `${moments} moments`}`,
    ...(ends === '' ? [] : [ends]),
    ...(existing === 0 ? [] : [`${existing === 1 ? '1 moment' : `${existing} moments`} had a run before`]),
  ].join('; ');
}

type BackfillProgress = Pick<Backfill, 'state' | 'moments' | 'left' | 'runs' | 'existing'>;

/** `3 starts were missed, the first of 1 Jan 2026, 04:00: Temporal was away`. */
export function describeGap(
  { outcome, count, moments: [first], reason }: Pick<ScheduleGap, 'outcome' | 'count' | 'moments' | 'reason'>,
  timezone: string,
): string {
  const starts = count === 1 ? '1 start was' : `${count} starts were`;
  const when =
    first === undefined ? '' : `, ${count === 1 ? '' : 'the first '}of ${formatMoment(first, timezone)}`;
  return `${starts} ${outcome}${when}: ${reason}`;
}
