/**
 * A run's money in time. A call holds its reservation from start to end, and its settled cost counts from its end. A
 * row keeps its reservation after the end, so the rows alone yield any moment.
 */

import type { Run } from '@capstan/core/contracts/run';
import { fromNanoUsd, toNanoUsd } from '@capstan/core/money/nano-usd';
import type { TimelineCall } from './timeline-model.ts';

export interface MoneyPoint {
  /** Unix time, ms; the values hold until the next point. */
  readonly at: number;
  readonly spent_usd: number;
  readonly held_usd: number;
}

interface MoneyChange {
  readonly at: number;
  readonly spent: bigint;
  readonly held: bigint;
}

function changesOf({ started_at, finished_at, reserved_usd, cost_usd }: TimelineCall): MoneyChange[] {
  if (started_at === null) return [];
  const held = toNanoUsd(reserved_usd);
  const begin = { at: Date.parse(started_at), spent: 0n, held };
  if (finished_at === null) return [begin];
  return [begin, { at: Date.parse(finished_at), spent: toNanoUsd(cost_usd), held: -held }];
}

/** A point for each change of money, and one for `now`; none before the first call. */
export function moneyCurve(calls: readonly TimelineCall[], now: number): MoneyPoint[] {
  const changes = calls
    .flatMap(changesOf)
    .filter(({ at }) => at <= now)
    .toSorted((a, b) => a.at - b.at);
  const points: MoneyPoint[] = [];
  let spent = 0n;
  let held = 0n;
  for (const [index, change] of changes.entries()) {
    spent += change.spent;
    held += change.held;
    if (changes[index + 1]?.at === change.at) continue;
    points.push({ at: change.at, spent_usd: fromNanoUsd(spent), held_usd: fromNanoUsd(held) });
  }
  const last = points.at(-1);
  return last === undefined || last.at === now ? points : [...points, { ...last, at: now }];
}

/** The cost of child runs: their calls are in their own timelines. */
export function spentBelow({ cost_usd, steps }: SpentRun, calls: readonly TimelineCall[]): number {
  if (!steps.some(({ pipeline }) => pipeline !== undefined)) return 0;
  const below = calls.reduce((left, call) => left - toNanoUsd(call.cost_usd), toNanoUsd(cost_usd));
  return below > 0n ? fromNanoUsd(below) : 0;
}

type SpentRun = Pick<Run, 'cost_usd' | 'steps'>;

export interface CurvePaths {
  /** Areas from 0 to the spent money, and from there to the reserved money; in a box of the given size, y downwards. */
  readonly spent: string;
  readonly held: string;
}

export interface CurveBox {
  readonly width: number;
  readonly height: number;
  /** Position of a moment, 0 to 1. */
  readonly at: (moment: number) => number;
}

export function mostOf(points: readonly MoneyPoint[]): number {
  return points.reduce((most, { spent_usd, held_usd }) => Math.max(most, spent_usd + held_usd), 0);
}

interface MoneyColumn {
  readonly x: number;
  readonly spent: number;
  readonly all: number;
}

/** One for each unit of the width: the highest sum within it, and the last spent amount. */
function toColumns(points: readonly MoneyPoint[], { width, at }: CurveBox): MoneyColumn[] {
  const columns: MoneyColumn[] = [];
  for (const { at: moment, spent_usd, held_usd } of points) {
    const x = Math.round(at(moment) * width);
    const before = columns.at(-1)?.x === x ? columns.pop() : undefined;
    columns.push({ x, spent: spent_usd, all: Math.max(before?.all ?? 0, spent_usd + held_usd) });
  }
  return columns;
}

/** Width of the last point: the cost of the last call would have none at the end of the box. */
const endWidth = 8;

/** Both as step areas: money does not change between two calls. */
export function toCurvePaths(points: readonly MoneyPoint[], box: CurveBox): CurvePaths {
  const columns = toColumns(points, box);
  const most = mostOf(points);
  const y = (usd: number): number => Math.round((1 - usd / most) * box.height * 100) / 100;
  const first = columns[0];
  const last = columns.at(-1);
  if (first === undefined || last === undefined || most === 0) return { spent: '', held: '' };
  const top = (of: (column: MoneyColumn) => number): string =>
    columns.map((column) => `H${column.x}V${y(of(column))}`).join('');
  const area = (of: (column: MoneyColumn) => number): string =>
    `M${first.x} ${box.height}${top(of)}h${endWidth}V${box.height}Z`;
  return { spent: area(({ spent }) => spent), held: area(({ all }) => all) };
}
