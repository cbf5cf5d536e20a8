import { policies } from './policies.ts';
import { type Check, type Figures, isMet, type Summary } from './summary.ts';

function row(name: string, ...cells: readonly string[]): string {
  return `  ${name.padEnd(24)}${cells.map((cell) => cell.padStart(10)).join('')}`;
}

function figuresRow(name: string, { keepsUp, meanWait, p99Wait, usd, freeShare }: Figures): string {
  return row(
    name,
    keepsUp ? meanWait.toFixed(3) : 'grows',
    keepsUp ? p99Wait.toFixed(2) : 'grows',
    usd.toFixed(5),
    `${Math.round(100 * freeShare)} %`,
  );
}

function checkRow(check: Check): string {
  const { what, value, bar } = check;
  if (bar === null) return `  note  ${what}: ${value.toFixed(2)}`;
  return `  ${isMet(check) ? 'pass' : 'FAIL'}  ${what}: ${value.toFixed(2)} (at most ${bar})`;
}

export function toTable({ fleet, load, figures, checks }: Summary): string {
  return [
    `${fleet.name}; load ${load}`,
    row('', 'mean wait', 'p99 wait', 'USD/call', 'free'),
    ...[...figures].map(([name, figure]) => figuresRow(policies[name].name, figure)),
    ...checks.map(checkRow),
    '',
  ].join('\n');
}
