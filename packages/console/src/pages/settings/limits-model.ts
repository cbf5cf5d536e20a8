/** The limits of requests as lines that people read. */
import type { Limits } from '@capstan/core/contracts/request-limits';
import { formatDuration } from '../../shared/format.ts';

export interface LimitLine {
  readonly name: string;
  readonly value: string;
}

export interface LimitGroup {
  readonly title: string;
  readonly lines: readonly LimitLine[];
}

/** The server encodes "no limit" as the greatest number. */
const noLimit = 2 ** 31 - 1;

export function describeCount(count: number): string {
  return count >= noLimit ? 'no limit' : count.toLocaleString('en-US');
}

const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** `1 MiB`, `2 GiB`, `1.5 KiB` */
export function describeBytes(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  return `${Number((bytes / 1_024 ** power).toFixed(1))} ${units[power]}`;
}

function linesOfBody({ bytes, depth, keys, values, string_bytes }: Limits['request']): LimitLine[] {
  return [
    { name: 'Size', value: describeBytes(bytes) },
    { name: 'Levels of nesting', value: describeCount(depth) },
    { name: 'Keys', value: describeCount(keys) },
    { name: 'Values', value: describeCount(values) },
    { name: 'Longest text', value: describeBytes(string_bytes) },
  ];
}

const rateWords: Readonly<Record<keyof NonNullable<Limits['rates']>, string>> = {
  request: 'Requests',
  start: 'Starts of runs',
  escalation: 'Escalations',
  heartbeat: 'Registrations and heartbeats',
  session: 'Sign-ins',
  wrong_key: 'Requests with a wrong key',
};

/** In the shortest unit that has at least one: `10 a minute`, not `0.1666… a second`. */
export function describeRate(perSecond: number): string {
  if (perSecond >= 1) return `${Number(perSecond.toPrecision(3))} a second`;
  const perMinute = perSecond * 60;
  if (perMinute >= 1) return `${Number(perMinute.toPrecision(3))} a minute`;
  return `${Number((perMinute * 60).toPrecision(3))} an hour`;
}

function linesOfRates(rates: Limits['rates']): LimitLine[] {
  if (rates === null) return [{ name: 'Requests', value: 'no limit' }];
  return (Object.keys(rateWords) as (keyof typeof rateWords)[]).map((kind) => {
    const { per_second, burst } = rates[kind];
    const value =
      per_second >= noLimit
        ? 'no limit'
        : `${describeRate(per_second)}, up to ${describeCount(burst)} at once`;
    return { name: rateWords[kind], value };
  });
}

export function describeLimits(limits: Limits): readonly LimitGroup[] {
  const { open_at_once: open } = limits;
  return [
    {
      title: 'Project',
      lines: [
        { name: 'Open runs', value: describeCount(limits.open_runs) },
        { name: 'Steps of a pipeline', value: describeCount(limits.pipeline_steps) },
        { name: 'Size of a file', value: describeBytes(limits.media_bytes) },
      ],
    },
    {
      title: 'Each key, in each server process',
      lines: [
        ...linesOfRates(limits.rates),
        { name: 'Open requests', value: open === null ? 'no limit' : describeCount(open.requests) },
        { name: 'Open streams', value: open === null ? 'no limit' : describeCount(open.streams) },
      ],
    },
    {
      title: 'Each request',
      lines: [
        { name: 'Headers', value: describeBytes(limits.header_bytes) },
        { name: 'Time to send the body', value: formatDuration(limits.body_timeout_ms) },
        { name: 'Longest wait for a result', value: formatDuration(limits.wait_seconds * 1_000) },
        { name: 'Items of a page', value: describeCount(limits.list_items) },
        {
          name: 'Answers kept for an Idempotency-Key',
          value: formatDuration(limits.idempotency_hours * 3_600_000),
        },
      ],
    },
    { title: 'Body of a request', lines: linesOfBody(limits.request) },
    { title: 'Body with a job or an input', lines: linesOfBody(limits.data) },
    { title: 'Body with a definition', lines: linesOfBody(limits.definition) },
  ];
}
