/** A run's calls as bars in time, or in money: one row per step or item, its deliveries stacked in it. */

import type { Json } from '@capstan/core/contracts/primitives';
import type { RunTimeline } from '@capstan/core/contracts/run-picture';
import type { RunStep } from '@capstan/core/contracts/run-step';
import { conditionOfStep } from '@capstan/core/run/run-status';
import type { StepGhost } from './ghost-model.ts';
import type { TimeSpan } from './scale.ts';

export interface TimelineCall {
  readonly step_id: string;
  readonly item: number | null;
  readonly attempt_id: string | null;
  readonly revision: number;
  readonly level: number | null;
  readonly endpoint: string | null;
  readonly state: string;
  readonly ready_at: string | null;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  readonly expected_ms: number | null;
  readonly expected_usd: number | null;
  readonly reserved_usd: number;
  readonly cost_usd: number;
  readonly certainty: string | null;
  /** The code with which it failed. */
  readonly error: string | null;
}

/** Turns the server's table into objects. */
export function readCalls({ columns, rows }: Pick<RunTimeline, 'columns' | 'rows'>): TimelineCall[] {
  return rows.map(
    (row) =>
      Object.fromEntries(
        columns.map((column, at): [string, Json] => [column, row[at] ?? null]),
      ) as unknown as TimelineCall,
  );
}

/** The calls at a moment: later ones are absent, and open ones have no end. */
export function callsAt(calls: readonly TimelineCall[], at: string | undefined): readonly TimelineCall[] {
  if (at === undefined) return calls;
  const isBy = (moment: string | null): boolean => moment !== null && Date.parse(moment) <= Date.parse(at);
  return calls
    .filter(({ ready_at, started_at }) => isBy(ready_at) || isBy(started_at))
    .map((call) => {
      if (isBy(call.finished_at)) return call;
      const started_at = isBy(call.started_at) ? call.started_at : null;
      return { ...call, started_at, finished_at: null, state: 'dispatched', cost_usd: 0 };
    });
}

/** The times of calls and of waits for a call. */
export function busyOf(calls: readonly TimelineCall[], now: number): TimeSpan[] {
  return calls.flatMap(({ ready_at, started_at, finished_at }) => {
    const from = Date.parse(ready_at ?? started_at ?? '');
    return Number.isFinite(from) ? [{ from, to: Date.parse(finished_at ?? '') || now }] : [];
  });
}

export interface Fold {
  readonly isOpen: boolean;
  readonly items: number;
  readonly failed: number;
  readonly cancelled: number;
}

export interface TimelineLine {
  readonly key: string;
  readonly step_id: string;
  readonly item: number | null;
  readonly depth: 0 | 1;
  readonly calls: readonly TimelineCall[];
  /** For a step with items or rounds. */
  readonly fold: Fold | null;
  /** Its parts, or the part that it is, are rounds. */
  readonly isRound?: boolean;
  /** Today's expectation for the step, unless its calls carry an expectation of their own. */
  readonly ghost: StepGhost | null;
  /** The reason for an empty row: the step was skipped, or its result was reused. */
  readonly note?: string;
  /** Stands for the items that are hidden. */
  readonly more?: { readonly shown: number; readonly all: number };
}

/** Its run was cancelled, or enough others had succeeded: it was stopped, and did not fail. */
export function isCancelled(call: Pick<TimelineCall, 'error'> | undefined): boolean {
  return call?.error === 'run_cancelled';
}

/** Whether the call is known to have failed. */
export function hasFailed(call: Pick<TimelineCall, 'error' | 'state'> | undefined): boolean {
  return (
    call !== undefined &&
    !isCancelled(call) &&
    (call.error !== null || ['lost', 'released', 'failed', 'unknown'].includes(call.state))
  );
}

function beginOf({ ready_at, started_at }: TimelineCall): number {
  return Date.parse(ready_at ?? started_at ?? '') || Number.POSITIVE_INFINITY;
}

/** The duration of its longest call; waits do not count against an item. */
function lengthOf(calls: readonly TimelineCall[], now: number): number {
  const lengths = calls.map(({ started_at, finished_at }) =>
    started_at === null ? 0 : (Date.parse(finished_at ?? '') || now) - Date.parse(started_at),
  );
  return Math.max(0, ...lengths);
}

const firstItems = 12;

/** Shows failed items of an expanded step first, then the slowest; the rest only on request. */
function pickItems(
  items: Map<number, TimelineCall[]>,
  isAll: boolean,
  now: number,
): (readonly [number, TimelineCall[]])[] {
  const all = [...items].sort(([a], [b]) => a - b);
  if (isAll || all.length <= firstItems) return all;
  const bad = (calls: readonly TimelineCall[]): number =>
    hasFailed(calls.at(-1)) ? 2 : calls.some(hasFailed) ? 1 : 0;
  return all
    .toSorted(([, a], [, b]) => bad(b) - bad(a) || lengthOf(b, now) - lengthOf(a, now))
    .slice(0, firstItems);
}

export interface RowOptions {
  readonly open: ReadonlySet<string>;
  readonly all: ReadonlySet<string>;
  readonly now: number;
  readonly steps: readonly RunStep[];
  readonly ghosts: ReadonlyMap<string, StepGhost>;
}

function groupCalls(calls: readonly TimelineCall[]): Map<string, TimelineCall[]> {
  const groups = new Map<string, TimelineCall[]>();
  for (const call of calls) {
    const group = groups.get(call.step_id);
    if (group === undefined) groups.set(call.step_id, [call]);
    else group.push(call);
  }
  return groups;
}

function noteOfEmpty(step: RunStep): string | null {
  if (step.state === 'skipped' || step.state === 'reused') return step.state;
  if (step.state !== 'cancelled') return null;
  return `${conditionOfStep(step).title.toLowerCase()} before it began`;
}

function emptyLine(step_id: string, ghost: StepGhost | null): TimelineLine {
  return { key: step_id, step_id, item: null, depth: 0, calls: [], fold: null, ghost };
}

/** Rows in the order in which steps began or are expected to begin. */
export function toRows(calls: readonly TimelineCall[], options: RowOptions): TimelineLine[] {
  const known = toKnownRows(calls, options);
  const shown = new Set(known.map(({ step_id }) => step_id));
  const empty = options.steps.flatMap((step): TimelineLine[] => {
    const note = shown.has(step.id) ? null : noteOfEmpty(step);
    return note === null ? [] : [{ ...emptyLine(step.id, null), note }];
  });
  const toCome = [...options.ghosts.values()].filter(({ step_id }) => !shown.has(step_id));
  return [
    ...known,
    ...empty,
    ...toCome.toSorted((a, b) => a.from - b.from).map((ghost) => emptyLine(ghost.step_id, ghost)),
  ];
}

function toFold(items: ReadonlyMap<number, readonly TimelineCall[]>, isOpen: boolean): Fold | null {
  if (items.size === 0) return null;
  const last = [...items.values()].map((calls) => calls.at(-1));
  return {
    isOpen,
    items: items.size,
    failed: last.filter(hasFailed).length,
    cancelled: last.filter(isCancelled).length,
  };
}

/** The shown items of a step, or its rounds, and a row for those that are hidden. */
function toItemRows(
  { step_id, isRound = false }: TimelineLine,
  items: ReadonlyMap<number, readonly TimelineCall[]>,
  shown: ReturnType<typeof pickItems>,
): TimelineLine[] {
  const rows = shown.map(
    ([item, calls]): TimelineLine => ({
      key: `${step_id} ${item}`,
      step_id,
      item,
      depth: 1,
      calls,
      fold: null,
      isRound,
      ghost: null,
    }),
  );
  if (rows.length === items.size) return rows;
  const more = { shown: rows.length, all: items.size };
  return [...rows, { ...emptyLine(step_id, null), key: `${step_id} more`, depth: 1, more }];
}

function toKnownRows(
  calls: readonly TimelineCall[],
  { open, all, now, ghosts, steps }: RowOptions,
): TimelineLine[] {
  const byStep = groupCalls(calls);
  const repeated = new Set(steps.flatMap(({ id, max_rounds }) => (max_rounds === undefined ? [] : [id])));
  const ordered = [...byStep].sort(
    ([, a], [, b]) => Math.min(...a.map(beginOf)) - Math.min(...b.map(beginOf)),
  );
  return ordered.flatMap(([step_id, own]): TimelineLine[] => {
    const items = new Map<number, TimelineCall[]>();
    for (const call of own) {
      if (call.item === null || call.item === 0) continue;
      items.set(call.item, [...(items.get(call.item) ?? []), call]);
    }
    const isOpen = open.has(step_id);
    const fold = toFold(items, isOpen);
    const isRound = repeated.has(step_id);
    const isSaid = fold === null && own.some(({ expected_ms }) => expected_ms !== null);
    const ghost = isSaid ? null : (ghosts.get(step_id) ?? null);
    const head: TimelineLine = {
      key: step_id,
      step_id,
      item: null,
      depth: 0,
      calls: own,
      fold,
      isRound,
      ghost,
    };
    if (!isOpen) return [head];
    return [head, ...toItemRows(head, items, pickItems(items, all.has(step_id), now))];
  });
}

/** Steps with a call that failed come first, in their order; each with its items below it. */
export function sortByFailure(rows: readonly TimelineLine[]): TimelineLine[] {
  const failed = new Set(rows.filter(({ calls }) => calls.some(hasFailed)).map(({ step_id }) => step_id));
  const isBad = ({ step_id }: TimelineLine): number => (failed.has(step_id) ? 1 : 0);
  return rows.toSorted((a, b) => isBad(b) - isBad(a));
}

/** The ratio of a call's time or cost to the router's expectation: 1 = as expected. */
function surpriseOf(call: TimelineCall, by: 'time' | 'money'): number {
  if (by === 'money') return call.expected_usd ? call.cost_usd / call.expected_usd : 1;
  const took = Date.parse(call.finished_at ?? '') - Date.parse(call.started_at ?? '');
  return call.expected_ms && Number.isFinite(took) ? took / call.expected_ms : 1;
}

/** Steps whose calls exceeded the expectation most come first. */
export function sortBySurprise(rows: readonly TimelineLine[], by: 'time' | 'money'): TimelineLine[] {
  const worst = ({ calls }: TimelineLine): number =>
    Math.max(0, ...calls.map((call) => surpriseOf(call, by)));
  return rows.filter(({ depth }) => depth === 0).toSorted((a, b) => worst(b) - worst(a));
}
