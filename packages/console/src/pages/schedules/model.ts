/** Schedules in words, and the request of their form. */

import { nextStarts } from '@capstan/core/calendar/starts';
import type { Json } from '@capstan/core/contracts/primitives';
import type { OverlapPolicy, Schedule } from '@capstan/core/contracts/schedule';
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
