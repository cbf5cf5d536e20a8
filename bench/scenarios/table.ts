import type { Outcome } from '../../test/scenarios/outcome.ts';

export interface Result {
  readonly name: string;
  readonly outcome: Outcome;
  readonly violations: readonly string[];
  readonly durationMs: number;
}

function row(...[name = '', ...cells]: readonly (string | number)[]): string {
  return String(name).padEnd(34) + cells.map((cell) => String(cell).padStart(11)).join('');
}

export const heading = row(
  ...['scenario', 'calls', 'succeeded', 'refused', 'other', 'limit', 'spent', 'overspend', 'reserved'],
  ...['kills', 'most held', 'violations', 'seconds'],
);

const refusals = ['budget_exhausted', 'budget_reserved'];

function sumOf(ends: Outcome['ends'], isCounted: (end: string) => boolean): number {
  return Object.entries(ends).reduce((sum, [end, count]) => sum + (isCounted(end) ? count : 0), 0);
}

export function toRow({ name, outcome, violations, durationMs }: Result): string {
  const { ends, account, kills, most } = outcome;
  const { limitUsd, spentUsd, reservedUsd } = account;
  const isRefusal = (end: string): boolean => refusals.includes(end);
  return row(
    ...[name, sumOf(ends, () => true), ends.succeeded ?? 0, sumOf(ends, isRefusal)],
    ...[sumOf(ends, (end) => end !== 'succeeded' && !isRefusal(end)), limitUsd, spentUsd.toFixed(3)],
    ...[limitUsd === 0 ? 0 : Math.max(0, spentUsd - limitUsd), reservedUsd, kills, most],
    ...[violations.length, (durationMs / 1_000).toFixed(1)],
  );
}
