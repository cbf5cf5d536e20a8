import type { Ratios } from './figures.ts';
import type { BenchResult, Comparison, Delays } from './result.ts';
import { type BySide, type SideName, sideNames } from './side.ts';

const titles: Readonly<Record<SideName, string>> = {
  capstan: 'Capstan',
  queued: 'Capstan queued',
  beside: 'other checkout',
  'beside queued': 'other queued',
  bare: 'bare',
  floor: 'floor',
  restate: 'Restate',
  dbos: 'DBOS',
};

type Columns = readonly SideName[];

function row(name: string, cells: readonly string[]): string {
  return name.padEnd(22) + cells.map((cell) => cell.padStart(16)).join('');
}

function sideRow<Value>(
  columns: Columns,
  name: string,
  { of, show }: { readonly of: BySide<Value>; readonly show: (value: Value) => string },
): string {
  return row(
    name,
    columns.map((side) => {
      const value = of[side];
      return value === undefined ? '-' : show(value);
    }),
  );
}

function head(columns: Columns, name: string): string[] {
  return [
    '',
    row(
      name,
      columns.map((side) => titles[side]),
    ),
  ];
}

function withRatio(value: string, ratio: number): string {
  return `${value} ${`(${ratio.toFixed(2)})`.padStart(6)}`;
}

function comparison(columns: Columns, { name, sides }: Comparison): string {
  return sideRow(columns, name, {
    of: sides,
    show: ({ value, ratio }) => withRatio(value.toFixed(2), ratio),
  });
}

function total(times: Readonly<Record<string, number>>): number {
  return Object.values(times).reduce((sum, ms) => sum + ms, 0);
}

function processorRows(columns: Columns, { processor_ms: of }: BenchResult): string[] {
  const parts = new Set(columns.flatMap((side) => Object.keys(of[side] ?? {})));
  const bare = total(of.bare ?? {});
  return [
    ...[...parts].map((part) =>
      sideRow(columns, part, { of, show: ({ [part]: ms }) => ms?.toFixed(1) ?? '-' }),
    ),
    sideRow(columns, 'all', {
      of,
      show: (times) => withRatio(total(times).toFixed(1), total(times) / bare),
    }),
  ];
}

function delayRows(columns: Columns, of: BySide<Delays>): string[] {
  const rowOf = (name: string, read: (delays: Delays) => number): string => {
    const bare = of.bare === undefined ? Number.NaN : read(of.bare);
    return sideRow(columns, name, {
      of,
      show: (delays) => withRatio(read(delays).toFixed(1), read(delays) / bare),
    });
  };
  return [rowOf('median', ({ p50_ms }) => p50_ms), rowOf('p99', ({ p99_ms }) => p99_ms)];
}

/** No bare workflow has a stream, so there is no ratio. */
function eventRows(columns: Columns, { event_delay: of }: BenchResult): string[] {
  if (Object.keys(of).length === 0) return [];
  return [
    ...head(columns, 'event to stream, ms'),
    sideRow(columns, 'median', { of, show: ({ p50_ms }) => p50_ms.toFixed(1) }),
    sideRow(columns, 'p99', { of, show: ({ p99_ms }) => p99_ms.toFixed(1) }),
    sideRow(columns, 'events', { of, show: ({ count }) => String(count) }),
  ];
}

function keptRows(columns: Columns, { kept: of }: BenchResult): string[] {
  if (Object.keys(of).length === 0) return [];
  return [
    ...head(columns, 'kept results'),
    sideRow(columns, 'ms per step', { of, show: ({ step_ms }) => step_ms.toFixed(2) }),
    sideRow(columns, 'USD', { of, show: ({ usd }) => usd.toFixed(4) }),
    sideRow(columns, 'calls', { of, show: ({ calls }) => String(calls) }),
    sideRow(columns, '1,000 equal items, ms', { of, show: ({ equal_items }) => equal_items.ms.toFixed(0) }),
    sideRow(columns, 'calls for them', { of, show: ({ equal_items }) => String(equal_items.most_calls) }),
  ];
}

function ratioRows(title: string, ratios: Ratios): string[] {
  const rows = sideNames.flatMap((side) =>
    Object.entries(ratios[side] ?? {}).map(
      ([name, ratio]) => `${`${titles[side]}: ${name}`.padEnd(44)}${ratio.toFixed(2)}`,
    ),
  );
  return rows.length === 0 ? [] : ['', `${title}, median of the rounds' own ratios`, ...rows];
}

function barRows({ bars }: BenchResult): string[] {
  return bars.map(({ side, name, value, kind, limit, passed }) => {
    const bar = `${kind} ${limit}`.padEnd(9);
    return `${`${titles[side]}: ${name}`.padEnd(44)}${value.toFixed(2).padStart(6)}  ${bar}${passed ? 'pass' : 'FAIL'}`;
  });
}

/** How it was carried out what set nothing, in the last round. */
function dispatchRows({ by_round }: BenchResult): string[] {
  const last = by_round.at(-1)?.dispatched ?? {};
  return sideNames.flatMap((side) => {
    const told = last[side];
    return told === undefined ? [] : [`${titles[side]}: ${told}`];
  });
}

/** @param beside path of the other checkout, where one took part */
export function toTable(result: BenchResult, beside: string | null): string {
  const columns = sideNames.filter((side) => result.runs_per_second.sides[side] !== undefined);
  return [
    `${result.at}  ${result.machine}  ${result.rounds} rounds; (by bare)`,
    ...(beside === null ? [] : [`other checkout: ${beside}`]),
    ...head(columns, 'ms per step'),
    ...result.step_ms.map((entry) => comparison(columns, entry)),
    ...head(columns, '32 in flight'),
    comparison(columns, result.runs_per_second),
    ...head(columns, 'processor ms/run'),
    ...processorRows(columns, result),
    ...head(columns, 'first dispatch, ms'),
    ...delayRows(columns, result.first_dispatch),
    ...eventRows(columns, result),
    ...keptRows(columns, result),
    '',
    sideRow(columns, 'history events', { of: result.history_events, show: (count) => String(count ?? '-') }),
    '',
    ...dispatchRows(result),
    '',
    "bars; by another side: the median of the rounds' own ratios",
    ...barRows(result),
    ...ratioRows('by the floor', result.by_floor),
    ...ratioRows('by DBOS', result.by_dbos),
    ...ratioRows('by the other checkout', result.by_other_checkout),
  ].join('\n');
}
