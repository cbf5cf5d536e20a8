import type { Growth } from './growth.ts';

/** What is shown by itself; smaller sums are together. */
const leastBytes = 100;

type Column = (growth: Growth) => ReadonlyMap<string, number>;

function lines(growths: readonly Growth[], column: Column, least: number, digits: number): string[] {
  const names = new Set(growths.flatMap((growth) => [...column(growth).keys()]));
  const rows = [...names].map((name) => ({
    name,
    values: growths.map((growth) => column(growth).get(name) ?? 0),
  }));
  const large = rows
    .filter(({ values }) => values.some((value) => value >= least))
    .sort((a, b) => (b.values[0] ?? 0) - (a.values[0] ?? 0));
  const sums = growths.map((_, at) => rows.reduce((sum, { values }) => sum + (values[at] ?? 0), 0));
  return [...large, { name: 'all', values: sums }].map(
    ({ name, values }) =>
      name.padEnd(36) + values.map((value) => value.toFixed(digits).padStart(12)).join(''),
  );
}

export function toTable(growths: readonly Growth[]): string {
  const head = growths
    .map(({ dispatch }) => (dispatch === 'auto' ? 'nothing set' : dispatch).padStart(12))
    .join('');
  return [
    `${'bytes per run, by table'.padEnd(36)}${head}`,
    ...lines(growths, ({ bytes }) => bytes, leastBytes, 0),
    '',
    `${'bytes of log per run, by database'.padEnd(36)}${head}`,
    ...lines(growths, ({ log }) => log, leastBytes, 0),
    '',
    `${'processor ms per run, by part'.padEnd(36)}${head}`,
    ...lines(growths, ({ processorMs }) => processorMs, 0.05, 1),
  ].join('\n');
}
