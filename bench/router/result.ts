/** The rounds in numbers: medians, ratios to Portkey's with their spread, and whether the bars are met. */
import { median } from '../engine/statistics.ts';
import type { Measured } from './load.ts';
import { protocols } from './payload.ts';
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
  readonly p99_1_ms: number;
  readonly p50_32_ms: number;
  readonly p99_32_ms: number;
  readonly per_second_32: number;
  /** Until the first piece of a stream; null: the answer comes whole. */
  readonly first_1_ms: number | null;
  readonly first_32_ms: number | null;
  readonly processor_us: Readonly<Record<string, number>>;
}

interface Bar {
  readonly name: string;
  /** The median of the rounds. */
  readonly value: number;
  readonly least: number;
  readonly most: number;
  readonly limit: string;
  readonly passed: boolean;
}

export interface RouterResult {
  readonly at: string;
  readonly machine: string;
  readonly rounds: number;
  readonly rows: readonly Row[];
  readonly bars: readonly Bar[];
  /** By those of a compiled gateway: the median of the rounds' own ratios. Empty where it took no part. */
  readonly by_compiled: readonly Ratio[];
  /** This checkout's value by the other one's: the median of the rounds' own ratios. Empty without another one. */
  readonly by_other_checkout: readonly Ratio[];
  readonly passed: boolean;
}

interface Ratio {
  readonly name: string;
  readonly value: number;
}

type Read = (round: SystemRound) => number;

/** One value by round, of a system and the one that it is held against. */
function compareRounds(
  rounds: readonly Round[],
  [name, by]: readonly [name: string, by: string],
  value: (own: SystemRound, other: SystemRound) => number,
): number[] {
  return rounds.map(({ systems }) => value(systems[name] as SystemRound, systems[by] as SystemRound));
}

/** @returns the median of the rounds' own ratios */
function ratioOf(rounds: readonly Round[], name: string, { by, read }: { by: string; read: Read }): number {
  return median(compareRounds(rounds, [name, by], (own, other) => read(own) / read(other)));
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

/** What a row took of processors in the processes that it names: other parts of the stack are never quite idle. */
export function ownTimeOf(name: string, processorUs: SystemRound['processorUs']): number {
  const isOwn = (part: string): boolean =>
    name.includes(': Capstan') ? /^(server|packaged)/.test(part) : name.endsWith(`: ${part}`);
  return Object.entries(processorUs)
    .filter(([part]) => isOwn(part))
    .reduce((sum, [, us]) => sum + us, 0);
}

const compiled = 'litellm-rs';

/** Figures of models by those of the compiled gateway for the same requests. */
function compareCompiled(rounds: readonly Round[]): Ratio[] {
  const names = Object.keys(rounds[0]?.systems ?? {});
  const figures = compared.filter(([figure]) => !/^p99|processor/.test(figure));
  return names.flatMap((name) => {
    const by = name.replace(/: Capstan.*/, `: ${compiled}`);
    if (by === name || !names.includes(by) || name.endsWith(besideMark)) return [];
    const ratios = figures.map(([figure, read]) => [figure, ratioOf(rounds, name, { by, read })] as const);
    const own = compareRounds(
      rounds,
      [name, by],
      (mine, other) => ownTimeOf(name, mine.processorUs) / ownTimeOf(by, other.processorUs),
    );
    return [...ratios, ['processor time', median(own)] as const].map(([figure, value]) => ({
      name: `${name}: ${figure}`,
      value,
    }));
  });
}

function numberOf(value: number): number | null {
  return Number.isNaN(value) ? null : value;
}

function rowOf(name: string, rounds: readonly SystemRound[]): Row {
  const of = (read: Read): number => median(rounds.map(read));
  const parts = Object.keys(rounds[0]?.processorUs ?? {});
  return {
    name,
    p50_1_ms: of(({ one }) => one.p50Ms),
    p99_1_ms: of(({ one }) => one.p99Ms),
    p50_32_ms: of(({ many }) => many.p50Ms),
    p99_32_ms: of(({ many }) => many.p99Ms),
    per_second_32: of(({ many }) => many.perSecond),
    first_1_ms: numberOf(of(({ one }) => one.firstMs)),
    first_32_ms: numberOf(of(({ many }) => many.firstMs)),
    processor_us: Object.fromEntries(
      parts.map((part) => [part, of(({ processorUs }) => processorUs[part] ?? 0)]),
    ),
  };
}

interface Limit {
  readonly is: '<=' | '>=';
  readonly limit: number;
}

function toBar(name: string, values: readonly number[], { is, limit }: Limit): Bar {
  const value = median(values);
  const passed = is === '<=' ? value <= limit : value >= limit;
  return {
    name,
    value,
    least: Math.min(...values),
    most: Math.max(...values),
    limit: `${is} ${limit}`,
    passed,
  };
}

/** The most that p50 of one caller, and the least that calls per second, may be by Portkey's. */
const gatewayBars: readonly (readonly [name: string, by: string, mostP50: number, leastRate: number])[] = [
  ['Capstan free', 'Portkey', 0.6, 4],
  ['Capstan paid', 'Portkey', 2.5, 2.5],
  ...protocols.flatMap((protocol) => [
    [`${protocol}: Capstan free`, `${protocol}: Portkey`, 1, 2] as const,
    [`${protocol}: Capstan paid`, `${protocol}: Portkey`, 2.5, 2] as const,
    [`${protocol} stream: Capstan free`, `${protocol} stream: Portkey`, 1, 2] as const,
    [`${protocol} stream: Capstan paid`, `${protocol} stream: Portkey`, 1, 2] as const,
  ]),
];

/** The most that a free call may take of processors, by what a Koa relay takes for one that it passes on. */
const relayBars: readonly (readonly [part: string, most: number])[] = [
  ['server', 3],
  ['Postgres', 0.95],
];

/** The most that the slowest of a hundred free calls may take, by Portkey's. */
const mostP99 = 0.5;

function readFreeBars(rounds: readonly Round[]): Bar[] {
  const p99 = compareRounds(
    rounds,
    ['Capstan free', 'Portkey'],
    (own, other) => own.many.p99Ms / other.many.p99Ms,
  );
  const parts = relayBars.map(([part, limit]) => {
    const shares = compareRounds(
      rounds,
      ['Capstan free', 'Koa relay'],
      (own, relay) => timeOf(own.processorUs, part) / timeOf(relay.processorUs, 'Koa relay'),
    );
    return toBar(`Capstan free: ${part}, by a Koa relay`, shares, { is: '<=', limit });
  });
  return [toBar('Capstan free: p99 at 32', p99, { is: '<=', limit: mostP99 }), ...parts];
}

/** A first piece may come after 1.2 times the time of a direct connection, and so much later, ms. */
const firstPieceBar = { share: 1.2, laterMs: 3 };

function readBars(rounds: readonly Round[], names: readonly string[]): Bar[] {
  const gateways = gatewayBars.filter(([name]) => names.includes(name));
  const bars = gateways.flatMap(([name, by, mostP50, leastRate]) => {
    const p50 = compareRounds(rounds, [name, by], (own, other) => own.one.p50Ms / other.one.p50Ms);
    const rate = compareRounds(rounds, [name, by], (own, other) => own.many.perSecond / other.many.perSecond);
    return [
      toBar(`${name}: p50 of one caller`, p50, { is: '<=', limit: mostP50 }),
      toBar(`${name}: calls per second at 32`, rate, { is: '>=', limit: leastRate }),
    ];
  });
  const { share, laterMs } = firstPieceBar;
  const streams = names.filter((name) => name.includes(' stream: Capstan') && !name.endsWith(besideMark));
  const firsts = streams.map((name) => {
    const later = compareRounds(
      rounds,
      [name, name.replace(/: .*/, ': direct')],
      (own, other) => own.one.firstMs - share * other.one.firstMs,
    );
    return toBar(`${name}: first piece, ms`, later, { is: '<=', limit: laterMs });
  });
  const free = names.includes('Capstan free') ? readFreeBars(rounds) : [];
  return [...bars, ...free, ...firsts];
}

export function summarize(rounds: readonly Round[], machine: string): RouterResult {
  const names = Object.keys(rounds[0]?.systems ?? {});
  const roundsOf = (name: string): SystemRound[] => rounds.map(({ systems }) => systems[name] as SystemRound);
  const bars = readBars(rounds, names);
  return {
    at: new Date().toISOString(),
    machine,
    rounds: rounds.length,
    rows: names.map((name) => rowOf(name, roundsOf(name))),
    bars,
    by_compiled: compareCompiled(rounds),
    by_other_checkout: compareCheckouts(rounds),
    passed: bars.every(({ passed }) => passed),
  };
}

function line(first: string, ...cells: readonly string[]): string {
  return first.padEnd(58) + cells.map((cell) => cell.padStart(12)).join('');
}

const shownParts: readonly string[] = [
  'server',
  'packaged model',
  'packaged model of messages',
  'Portkey',
  'LiteLLM',
  compiled,
  'Koa relay',
  'http-proxy',
  'Postgres',
  'upstream',
];

/** Also the server of another checkout. */
function isShown(part: string): boolean {
  return shownParts.includes(part) || part.startsWith('server (');
}

function toRatios(title: string, ratios: readonly Ratio[]): readonly string[] {
  if (ratios.length === 0) return [];
  return ['', title, ...ratios.map(({ name, value }) => line(name, value.toFixed(2)))];
}

export function toTable(result: RouterResult): string {
  const { at, machine, rounds, rows, bars } = result;
  return [
    `${at}  ${machine}  ${rounds} rounds`,
    '',
    line('', 'p50 ms, 1', 'p99, 1', 'p50, 32', 'p99, 32', 'calls/s, 32', 'first, 1', 'first, 32'),
    ...rows.map((row) =>
      line(
        row.name,
        row.p50_1_ms.toFixed(2),
        row.p99_1_ms.toFixed(2),
        row.p50_32_ms.toFixed(2),
        row.p99_32_ms.toFixed(2),
        row.per_second_32.toFixed(0),
        row.first_1_ms?.toFixed(2) ?? '',
        row.first_32_ms?.toFixed(2) ?? '',
      ).trimEnd(),
    ),
    '',
    'processor time per call at 32 callers, µs (with two processors: system under test on 0, all else on 1)',
    ...rows.map((row) => {
      const parts = Object.keys(row.processor_us).filter(
        (part) => isShown(part) && (row.processor_us[part] ?? 0) >= 10,
      );
      return (
        line(row.name) + parts.map((part) => `${part} ${(row.processor_us[part] ?? 0).toFixed(0)}`).join('  ')
      );
    }),
    '',
    "by Portkey's or a relay's, of the rounds' own ratios the median, the least and the most; the first piece less 1.2 × a direct one's",
    ...bars.map(({ name, value, least, most, limit, passed }) =>
      line(name, value.toFixed(2), least.toFixed(2), most.toFixed(2), limit, passed ? 'pass' : 'FAIL'),
    ),
    ...toRatios(`by ${compiled}, median of the rounds' own ratios`, result.by_compiled),
    ...toRatios("by the other checkout, median of the rounds' own ratios", result.by_other_checkout),
  ].join('\n');
}
