import type { Drift } from '../../src/db/money/budget-drift.ts';
import { median, percentile99 } from '../engine/statistics.ts';
import type { Sample } from './samples.ts';
import type { Progress } from './steady-load.ts';

export interface Soak extends Progress {
  /** Runs that began in a second. */
  readonly perSecond: number;
  readonly samples: readonly Sample[];
  /** Budgets that differ from their attempts; null while they are not compared. */
  readonly drift: readonly Drift[] | null;
}

const mostMegabytesPerHour = 5;
const megabyte = 1_000_000;
/** Until then caches fill and code is compiled. */
const warmUp = 1 / 4;

/** The slope of the line through them, by least squares. @param points x and y */
export function slopeOf(points: readonly (readonly [number, number])[]): number {
  const meanX = points.reduce((sum, [x]) => sum + x, 0) / points.length;
  const meanY = points.reduce((sum, [, y]) => sum + y, 0) / points.length;
  const over = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0);
  const under = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
  return under === 0 ? 0 : over / under;
}

interface Growth {
  readonly part: string;
  readonly first: number;
  readonly last: number;
  /** Megabytes an hour, once it is warm. */
  readonly perHour: number;
}

function growthOf({ samples }: Soak): readonly Growth[] {
  const warm = samples.slice(Math.floor(samples.length * warmUp));
  const parts = [...(warm[0]?.memory.keys() ?? [])];
  return parts.map((part) => {
    const sizes = warm.map(
      ({ atMs, memory }) => [atMs / 3_600_000, (memory.get(part) ?? 0) / megabyte] as const,
    );
    return { part, first: sizes[0]?.[1] ?? 0, last: sizes.at(-1)?.[1] ?? 0, perHour: slopeOf(sizes) };
  });
}

/** Postgres and Temporal keep caches that fill with what they hold; only Capstan's own parts are held to the bar. */
function isOwn({ part }: Growth): boolean {
  return part.startsWith('server') || part.startsWith('worker');
}

export function findBreaches(soak: Soak): readonly string[] {
  const grown = growthOf(soak).filter((growth) => isOwn(growth) && growth.perHour >= mostMegabytesPerHour);
  return [
    ...(soak.fault === null ? [] : [soak.fault]),
    ...grown.map(({ part, perHour }) => `${part} grows by ${perHour.toFixed(1)} MB an hour`),
    ...(soak.drift ?? []).map((drift) => `a budget differs from its attempts: ${JSON.stringify(drift)}`),
    ...(soak.late > soak.done / 100 ? [`${soak.late} of ${soak.done} runs began late`] : []),
  ];
}

/** The first and the last quarter: what grows with the tables would be seen in the second. */
function describeTimes({ seconds }: Soak): string {
  const some = Math.ceil(seconds.length / 4);
  const of = (part: readonly number[]) =>
    part.length === 0 ? 'none' : `median ${median(part).toFixed(2)}, p99 ${percentile99(part).toFixed(2)}`;
  return `seconds of a run   ${of(seconds.slice(0, some))}; at the end ${of(seconds.slice(seconds.length - some))}`;
}

export function describeSoak(soak: Soak): string {
  const { hours, perSecond, done, late, samples, drift } = soak;
  const connections = samples.map((sample) => sample.connections);
  const [first, last] = [samples[0], samples.at(-1)];
  const tables = [...(last?.tables ?? [])]
    .map(([name, bytes]) => [name, (bytes - (first?.tables.get(name) ?? 0)) / done] as const)
    .filter(([, bytes]) => bytes >= 100);
  return [
    `${hours.toFixed(2)} h, ${perSecond.toFixed(1)} runs of three paid steps a second, ${done} in all, ${late} began late`,
    '',
    'memory, MB        warm      end   per hour',
    ...growthOf(soak).map(
      ({ part, first: from, last: to, perHour }) =>
        part.padEnd(12) + [from, to, perHour].map((n) => n.toFixed(1).padStart(10)).join(''),
    ),
    '',
    describeTimes(soak),
    `connections        ${Math.min(...connections)} to ${Math.max(...connections)}`,
    `budgets that differ from their attempts: ${drift?.length ?? 'not compared yet'}`,
    '',
    'bytes per run, by table',
    ...tables.map(([name, bytes]) => name.padEnd(32) + bytes.toFixed(0).padStart(8)),
  ].join('\n');
}
