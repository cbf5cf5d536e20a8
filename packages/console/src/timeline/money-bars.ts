/** The bars of a row by money: the cost of each call, and behind it the expected cost. */
import { formatUsd } from '../shared/format.ts';
import { type Bar, kindOfGhost, toneOfCall } from './bars.ts';
import { describeGhost } from './ghost-words.ts';
import type { TimelineCall, TimelineLine } from './timeline-model.ts';

export function sumOfCalls(calls: readonly TimelineCall[]): number {
  return calls.reduce((sum, { cost_usd }) => sum + cost_usd, 0);
}

function expectedOf({ calls, ghost }: TimelineLine): number {
  return ghost?.expected_usd ?? calls.reduce((sum, { expected_usd }) => sum + (expected_usd ?? 0), 0);
}

/** The full width in USD; above 0. */
export function mostOfRows(rows: readonly TimelineLine[]): number {
  const least = 1e-12;
  return rows.reduce((most, row) => Math.max(most, sumOfCalls(row.calls), expectedOf(row)), least);
}

/** Places each call beside the one before it, as a share of `most`. */
export function toMoneyBars(row: TimelineLine, most: number, now: number): Bar[] {
  const { calls, ghost } = row;
  const behind: Bar = {
    key: 'e',
    left: 0,
    width: expectedOf(row) / most,
    tone: 'quiet',
    kind: ghost === null ? 'expected' : kindOfGhost(ghost),
    title: ghost === null ? 'expected' : describeGhost(ghost, now),
    lane: 0,
  };
  let left = 0;
  const bars = calls.map((call, index): Bar => {
    const width = call.cost_usd / most;
    const title = `${formatUsd(call.cost_usd)}${call.certainty === 'estimated' ? ', estimated' : ''}`;
    const key = call.attempt_id ?? String(index);
    const bar: Bar = { key, left, width, tone: toneOfCall(call), kind: 'called', title, lane: 0 };
    left += width;
    return bar;
  });
  return [behind, ...bars].filter(({ width }) => width > 0);
}
