/** What the rounds say: medians, ratios to Portkey's, and whether the bars are met. */
import { median } from '../engine/statistics.ts';
import type { Measured } from './load.ts';
import { besideMark } from './systems.ts';

interface SystemRound {
  readonly one: Measured;
  readonly many: Measured;
  /** Microseconds of processor time per call at 32 callers, by part. */
  readonly processorUs: Readonly<Record<string, number>>;
}

export interface Round {
  readonly systems: Readonly<Record<string, SystemRound>>;
}

interface Row {
  readonly name: string;
  readonly p50_1_ms: number;
  readonly p50_32_ms: number;
  readonly p99_32_ms: number;
  readonly per_second_32: number;
  readonly processor_us: Readonly<Record<string, number>>;
}

interface Bar {
  readonly name: string;
  readonly value: number;
  readonly limit: string;
  readonly passed: boolean;
}

export interface RouterResult {
  readonly at: string;
  readonly machine: string;
  readonly rounds: number;
  readonly rows: readonly Row[];
  readonly bars: readonly Bar[];
  /** This checkout's value by the other one's: the median of the rounds' own ratios. Empty without another one. */
  readonly by_other_checkout: readonly Ratio[];
  readonly passed: boolean;
}

interface Ratio {
  readonly name: string;
  readonly value: number;
}

type Read = (round: SystemRound) => number;

const rival = 'Portkey';

/** @returns the median of the rounds' own ratios */
function ratioOf(rounds: readonly Round[], name: string, { by, read }: { by: string; read: Read }): number {
  return median(
    rounds.map(({ systems }) => read(systems[name] as SystemRound) / read(systems[by] as SystemRound)),
  );
}

const compared: readonly (readonly [name: string, read: Read])[] = [
  ['p50 of one caller', ({ one }) => one.p50Ms],
  ['p50 at 32', ({ many }) => many.p50Ms],
  ['p99 at 32', ({ many }) => many.p99Ms],
  ['calls per second at 32', ({ many }) => many.perSecond],
  ['processor time of the server', ({ processorUs }) => timeOf(processorUs, 'server')],
  ['processor time of Postgres', ({ processorUs }) => timeOf(processorUs, 'Postgres')],
];

/** The server of another checkout has a name of its own; only one of the two is at work in a round. */
function timeOf(processorUs: SystemRound['processorUs'], part: string): number {
  return Object.entries(processorUs)
    .filter(([name]) => name === part || name.startsWith(`${part} (`))
    .reduce((sum, [, us]) => sum + us, 0);
}

function compareCheckouts(rounds: readonly Round[]): Ratio[] {
  const names = Object.keys(rounds[0]?.systems ?? {});
  return names
    .filter((name) => names.includes(`${name}${besideMark}`))
    .flatMap((name) =>
      compared.map(([figure, read]) => ({
        name: `${name}: ${figure}`,
        value: ratioOf(rounds, name, { by: `${name}${besideMark}`, read }),
      })),
    );
}

function rowOf(name: string, rounds: readonly SystemRound[]): Row {
  const of = (read: Read): number => median(rounds.map(read));
  const parts = Object.keys(rounds[0]?.processorUs ?? {});
  return {
    name,
    p50_1_ms: of(({ one }) => one.p50Ms),
    p50_32_ms: of(({ many }) => many.p50Ms),
    p99_32_ms: of(({ many }) => many.p99Ms),
    per_second_32: of(({ many }) => many.perSecond),
    processor_us: Object.fromEntries(
      parts.map((part) => [part, of(({ processorUs }) => processorUs[part] ?? 0)]),
    ),
  };
}

function readBars(rounds: readonly Round[]): Bar[] {
  const p50 = (name: string, most: number): Bar => {
    const value = ratioOf(rounds, name, { by: rival, read: ({ one }) => one.p50Ms });
    return { name: `${name}: p50 of one caller`, value, limit: `<= ${most}`, passed: value <= most };
  };
  const rate = (name: string, least: number): Bar => {
    const value = ratioOf(rounds, name, { by: rival, read: ({ many }) => many.perSecond });
    return { name: `${name}: calls per second at 32`, value, limit: `>= ${least}`, passed: value >= least };
  };
  return [
    p50('Capstan free', 1.1),
    rate('Capstan free', 2.5),
    p50('Capstan paid', 1.5),
    rate('Capstan paid', 1.2),
  ];
}

export function summarize(rounds: readonly Round[], machine: string): RouterResult {
  const names = Object.keys(rounds[0]?.systems ?? {});
  const roundsOf = (name: string): SystemRound[] => rounds.map(({ systems }) => systems[name] as SystemRound);
  const bars = readBars(rounds);
  return {
    at: new Date().toISOString(),
    machine,
    rounds: rounds.length,
    rows: names.map((name) => rowOf(name, roundsOf(name))).sort((a, b) => a.name.localeCompare(b.name)),
    bars,
    by_other_checkout: compareCheckouts(rounds),
    passed: bars.every(({ passed }) => passed),
  };
}

function line(first: string, ...cells: readonly string[]): string {
  return first.padEnd(44) + cells.map((cell) => cell.padStart(12)).join('');
}

const shownParts: readonly string[] = [
  'server',
  'Portkey',
  'Koa relay',
  'http-proxy',
  'Postgres',
  'upstream',
  'paid upstream',
];

/** Also the server of another checkout. */
function isShown(part: string): boolean {
  return shownParts.includes(part) || part.startsWith('server (');
}

export function toTable({ at, machine, rounds, rows, bars, by_other_checkout }: RouterResult): string {
  return [
    `${at}  ${machine}  ${rounds} rounds`,
    '',
    line('', 'p50 ms, 1', 'p50 ms, 32', 'p99 ms, 32', 'calls/s, 32'),
    ...rows.map((row) =>
      line(
        row.name,
        row.p50_1_ms.toFixed(2),
        row.p50_32_ms.toFixed(2),
        row.p99_32_ms.toFixed(2),
        row.per_second_32.toFixed(0),
      ),
    ),
    '',
    'processor time per call at 32 callers, µs (system under test on processor 0, all else on 1)',
    ...rows.map((row) => {
      const parts = Object.keys(row.processor_us).filter(
        (part) => isShown(part) && (row.processor_us[part] ?? 0) >= 10,
      );
      return (
        line(row.name) + parts.map((part) => `${part} ${(row.processor_us[part] ?? 0).toFixed(0)}`).join('  ')
      );
    }),
    '',
    `by ${rival}'s, median of the rounds' own ratios`,
    ...bars.map(({ name, value, limit, passed }) =>
      line(name, value.toFixed(2), limit, passed ? 'pass' : 'FAIL'),
    ),
    ...(by_other_checkout.length === 0
      ? []
      : ['', "by the other checkout, median of the rounds' own ratios"]),
    ...by_other_checkout.map(({ name, value }) => line(name, value.toFixed(2))),
  ].join('\n');
}
