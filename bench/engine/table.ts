import { type BenchResult, bars, type Comparison } from './result.ts';

const row = (...cells: readonly string[]): string =>
  cells.map((cell, index) => (index === 0 ? cell.padEnd(18) : cell.padStart(10))).join('');

const comparison = ({ name, capstan, bare, ratio, passed }: Comparison, bar: string): string =>
  `${row(name, capstan.toFixed(2), bare.toFixed(2), ratio.toFixed(2))}  ${bar}  ${passed ? 'pass' : 'FAIL'}`;

const total = (times: Readonly<Record<string, number>>): number =>
  Object.values(times).reduce((sum, ms) => sum + ms, 0);

const processorRows = ({ processor_ms: { capstan, bare } }: BenchResult): string[] => [
  ...Object.keys(capstan).map((part) =>
    row(part, (capstan[part] ?? 0).toFixed(1), (bare[part] ?? 0).toFixed(1), ''),
  ),
  row('all', total(capstan).toFixed(1), total(bare).toFixed(1), (total(capstan) / total(bare)).toFixed(2)),
];

export const toTable = (result: BenchResult): string =>
  [
    `${result.at}  ${result.machine}  ${result.rounds} rounds`,
    '',
    row('ms per step', 'Capstan', 'bare', 'ratio'),
    ...result.step_ms.map((entry) => comparison(entry, `<= ${bars.stepTime}`)),
    '',
    row('32 in flight', 'Capstan', 'bare', 'ratio'),
    comparison(result.runs_per_second, `>= ${bars.throughput}`),
    '',
    row('processor ms/run', 'Capstan', 'bare', 'ratio'),
    ...processorRows(result),
    '',
    row('history events', String(result.history_events.capstan), String(result.history_events.bare), ''),
  ].join('\n');
