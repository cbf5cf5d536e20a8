import type { BenchResult, Comparison, Delays } from './result.ts';
import { type BySide, type SideName, sideNames } from './side.ts';

const titles: Readonly<Record<SideName, string>> = {
  capstan: 'Capstan',
  inline: 'Capstan inline',
  bare: 'bare',
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

function delayRows(columns: Columns, { first_dispatch: of }: BenchResult): string[] {
  const rowOf = (name: string, read: (delays: Delays) => number): string => {
    const bare = of.bare === undefined ? Number.NaN : read(of.bare);
    return sideRow(columns, name, {
      of,
      show: (delays) => withRatio(read(delays).toFixed(1), read(delays) / bare),
    });
  };
  return [rowOf('median', ({ p50_ms }) => p50_ms), rowOf('p99', ({ p99_ms }) => p99_ms)];
}

function eventRows({ event_delay }: BenchResult): string[] {
  if (event_delay === null) return [];
  const { p50_ms, p99_ms, count } = event_delay;
  return [
    '',
    `event to stream, ms     median ${p50_ms.toFixed(1)}, p99 ${p99_ms.toFixed(1)}, ${count} events`,
  ];
}

function barRows({ step_ms, runs_per_second }: BenchResult): string[] {
  return sideNames.flatMap((side) =>
    [...step_ms, runs_per_second].flatMap(({ name, sides }) => {
      const { bar = null, ratio = Number.NaN, passed = null } = sides[side] ?? {};
      if (bar === null) return [];
      const limit = `${bar.kind} ${bar.limit}`.padEnd(9);
      return [
        `${`${titles[side]}: ${name}`.padEnd(38)}${ratio.toFixed(2)}  ${limit}${passed ? 'pass' : 'FAIL'}`,
      ];
    }),
  );
}

export function toTable(result: BenchResult): string {
  const columns = sideNames.filter((side) => result.runs_per_second.sides[side] !== undefined);
  return [
    `${result.at}  ${result.machine}  ${result.rounds} rounds; (by bare)`,
    ...head(columns, 'ms per step'),
    ...result.step_ms.map((entry) => comparison(columns, entry)),
    ...head(columns, '32 in flight'),
    comparison(columns, result.runs_per_second),
    ...head(columns, 'processor ms/run'),
    ...processorRows(columns, result),
    ...head(columns, 'first dispatch, ms'),
    ...delayRows(columns, result),
    ...eventRows(result),
    '',
    sideRow(columns, 'history events', { of: result.history_events, show: (count) => String(count ?? '-') }),
    '',
    "by bare, median of the rounds' own ratios",
    ...barRows(result),
  ].join('\n');
}
