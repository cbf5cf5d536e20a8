import type { Place } from '../shared/run-bench.ts';
import type { AddDatabase } from '../shared/start-database.ts';

/** What a part is measured with. */
export interface Bench {
  readonly place: Place;
  readonly isQuick: boolean;
  /** The folder of another checkout, for the parts that can measure one. */
  readonly beside: string | undefined;
  /** On one Postgres for all parts, which is started when it is first needed. */
  readonly addDatabase: AddDatabase;
}

/** One measured value beside its bar. */
export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: 'µs' | 'ms' | '×' | 'B' | 'nano-USD' | 'pairs/s';
  /** The most or the least that it may be; null where it is only shown. */
  readonly bar: { readonly kind: '<=' | '>='; readonly limit: number } | null;
}

export function isMet({ value, bar }: Figure): boolean {
  if (bar === null) return true;
  return bar.kind === '<=' ? value <= bar.limit : value >= bar.limit;
}

const whole: ReadonlySet<Figure['unit']> = new Set(['B', 'pairs/s', 'nano-USD']);

export function toLine(figure: Figure): string {
  const { name, value, unit, bar } = figure;
  const shown = `${name.padEnd(44)}${value.toFixed(whole.has(unit) ? 0 : 2).padStart(10)} ${unit.padEnd(9)}`;
  if (bar === null) return shown.trimEnd();
  return `${shown}${`${bar.kind} ${bar.limit}`.padEnd(9)}${isMet(figure) ? 'pass' : 'FAIL'}`;
}
