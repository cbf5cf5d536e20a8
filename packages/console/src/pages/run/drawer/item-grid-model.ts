/** The items of a step as cells: their states and looks, and keyboard navigation. */
import type { RunStepItem } from '@capstan/core/contracts/run-step';
import { lookOf, type Tone } from '../../../shared/state.ts';

export interface ItemCell {
  readonly item: number;
  readonly state: string;
  readonly tone: Tone;
  readonly isFailed: boolean;
}

const mostCells = 2_000;

function toCell(item: number, state: string): ItemCell {
  const { tone } = lookOf(state);
  return { item, state, tone, isFailed: tone === 'failed' };
}

/** Items that have not begun have no row: they are pending. */
export function toCells(
  counts: Readonly<Record<string, number>>,
  rows: readonly Pick<RunStepItem, 'item' | 'state'>[],
): { readonly cells: readonly ItemCell[]; readonly failed: number; readonly all: number } {
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const states = new Map(rows.map(({ item, state }) => [item, state]));
  const cells = Array.from({ length: Math.min(all, mostCells) }, (_, index) =>
    toCell(index + 1, states.get(index + 1) ?? 'pending'),
  );
  return { cells, failed: (counts.failed ?? 0) + (counts.unknown ?? 0), all };
}

/** @returns the index that a key leads to; null: the key leads nowhere */
export function moveInGrid(
  key: string,
  at: number,
  { count, columns }: { readonly count: number; readonly columns: number },
): number | null {
  const steps: Readonly<Record<string, number>> = {
    ArrowRight: 1,
    ArrowLeft: -1,
    ArrowDown: columns,
    ArrowUp: -columns,
    Home: -count,
    End: count,
  };
  const step = steps[key];
  return step === undefined ? null : Math.min(count - 1, Math.max(0, at + step));
}
