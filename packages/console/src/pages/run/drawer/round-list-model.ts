/** The rounds of a step with `repeat` as lines: state, time and price of each, the last one first. */
import type { RunStepItem } from '@capstan/core/contracts/run-step';
import { formatDuration, formatUsd } from '../../../shared/format.ts';
import { lookOf } from '../../../shared/state.ts';

export interface ShownRound {
  /** From 1. */
  readonly item: number;
  readonly state: string;
  /** Empty before it has ended. */
  readonly took: string;
  /** Empty at no cost. */
  readonly money: string;
}

type KnownRound = Pick<RunStepItem, 'item' | 'state' | 'started_at' | 'finished_at' | 'cost_usd'>;

/** A round that has not begun has no row: it is pending. */
export function toRounds(
  counts: Readonly<Record<string, number>>,
  rows: readonly KnownRound[],
): readonly ShownRound[] {
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const known = new Map(rows.map((row) => [row.item, row]));
  return Array.from({ length: all }, (_, index) => toRow(index + 1, known.get(index + 1))).reverse();
}

function toRow(item: number, row: KnownRound | undefined): ShownRound {
  const { state = 'pending', started_at = null, finished_at = null, cost_usd = 0 } = row ?? {};
  const hasTime = started_at !== null && finished_at !== null;
  return {
    item,
    state: lookOf(state).word,
    took: hasTime ? formatDuration(Date.parse(finished_at) - Date.parse(started_at)) : '',
    money: cost_usd === 0 ? '' : formatUsd(cost_usd),
  };
}
