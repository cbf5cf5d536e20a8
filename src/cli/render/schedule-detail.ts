/** A schedule for people: when it starts next, what, and with what. */
import type { Schedule } from '../../contracts/schedule.ts';
import { formatUsd } from './amounts.ts';
import type { Printer } from './print.ts';

export function targetOf({ pipeline, version, alias }: Schedule): string {
  return `${pipeline}@${version ?? alias ?? 'latest'}`;
}

/** Why nothing is next, or what the calendar says. */
export function standingOf({ paused, delivered }: Schedule): string {
  if (paused) return 'paused';
  return delivered ? 'active' : 'waits for Temporal';
}

/** In the schedule's own zone, with its offset: what a person wrote the calendar for. */
export function formatTime(at: string, timeZone: string): string {
  const format = new Intl.DateTimeFormat('en-CA', {
    timeZone,
    hourCycle: 'h23',
    timeZoneName: 'longOffset',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
  });
  const parts = format.formatToParts(new Date(at)).map(({ type, value }) => [type, value] as const);
  const { year, month, day, hour, minute, timeZoneName = '' } = Object.fromEntries(parts);
  return `${year}-${month}-${day} ${hour}:${minute} ${timeZoneName.replace('GMT', '') || '+00:00'}`;
}

function optional(name: string, value: string | undefined): string[] {
  return value === undefined ? [] : [`${name} ${value}`];
}

export function renderSchedule(schedule: Schedule, { style }: Printer): string[] {
  const { budget_ceiling_usd: ceiling, labels = {}, next_at, timezone } = schedule;
  const labelled = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  return [
    `${style.bold(schedule.name)}  ${schedule.schedule_id}  ${standingOf(schedule)}`,
    `starts ${targetOf(schedule)} at "${schedule.cron}" in ${timezone}`,
    `overlap ${schedule.overlap}, catch-up ${schedule.catch_up}`,
    ...optional('priority', schedule.priority),
    ...optional('budget', ceiling === undefined ? undefined : formatUsd(ceiling)),
    ...optional('labels', labelled.length === 0 ? undefined : labelled.join(' ')),
    `job ${JSON.stringify(schedule.job)}`,
    ...(next_at.length === 0 ? [] : [style.bold('next')]),
    ...next_at.map((at) => `  ${formatTime(at, timezone)}`),
  ];
}
