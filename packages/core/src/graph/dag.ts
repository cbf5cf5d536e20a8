/**
 * The dependency graph of a pipeline, by step index: its order, its cycles, its longest chain. The order is Kahn's,
 * with the first defined step first among the ready ones, so a definition in a valid order keeps it. O(E + V log V).
 * Every step outside the order waits for another step outside it. So walking from one to the next ends in a cycle, in
 * O(V + E) altogether.
 */

import { createHeap } from './heap.ts';

export interface GraphStep {
  readonly id: string;
  readonly depends_on: readonly string[];
}

export interface Graph {
  /** Every step after all it depends on, without steps on or after a cycle. */
  readonly order: readonly number[];
  /** Per step, the steps it depends on, unique and ascending. */
  readonly predecessors: readonly (readonly number[])[];
  /** Per step, the steps that depend on it, unique and ascending. */
  readonly successors: readonly (readonly number[])[];
}

/** Ignores unknown ids; a duplicate id refers to the first step with it. */
export function createGraph(steps: readonly GraphStep[]): Graph {
  const indexes = new Map<string, number>();
  for (const [index, { id }] of steps.entries()) if (!indexes.has(id)) indexes.set(id, index);
  const predecessors = steps.map(({ depends_on }) => {
    const known = depends_on.map((id) => indexes.get(id)).filter((index) => index !== undefined);
    return [...new Set(known)].sort((a, b) => a - b);
  });
  const successors: number[][] = steps.map(() => []);
  for (const [index, before] of predecessors.entries()) {
    for (const predecessor of before) successors[predecessor]?.push(index);
  }
  return { order: sortTopologically(predecessors, successors), predecessors, successors };
}

function sortTopologically(predecessors: Graph['predecessors'], successors: Graph['successors']): number[] {
  const waitsFor = predecessors.map((before) => before.length);
  const ready = createHeap<number>((one, other) => one < other);
  for (const [index, count] of waitsFor.entries()) if (count === 0) ready.push(index);
  const order: number[] = [];
  for (let index = ready.pop(); index !== undefined; index = ready.pop()) {
    order.push(index);
    for (const successor of successors[index] ?? []) {
      const left = (waitsFor[successor] ?? 0) - 1;
      waitsFor[successor] = left;
      if (left === 0) ready.push(successor);
    }
  }
  return order;
}

/**
 * Disjoint cycles, at least one when there is any. Each step depends on the next and the last on the first. Each cycle
 * starts at its first defined step.
 */
export function findCycles({ order, predecessors }: Graph): number[][] {
  const placed = new Set(order);
  const walkOf = new Map<number, number>();
  const cycles: number[][] = [];
  for (const start of predecessors.keys()) {
    if (placed.has(start) || walkOf.has(start)) continue;
    const path: number[] = [];
    let step: number | undefined = start;
    while (step !== undefined && !walkOf.has(step)) {
      walkOf.set(step, start);
      path.push(step);
      step = predecessors[step]?.find((before) => !placed.has(before));
    }
    if (step !== undefined && walkOf.get(step) === start)
      cycles.push(startAtFirst(path.slice(path.indexOf(step))));
  }
  return cycles;
}

function startAtFirst(cycle: readonly number[]): number[] {
  const first = cycle.indexOf(cycle.reduce((lowest, index) => Math.min(lowest, index)));
  return [...cycle.slice(first), ...cycle.slice(0, first)];
}

// The critical path of a run, when every step starts as soon as all its dependencies are done.

export interface TimedStep {
  readonly id: string;
  /** Indexes. */
  readonly dependencies: readonly number[];
  /** Null = the step does not run and delays no other. */
  readonly durationMs: number | null;
}

export interface CriticalPath {
  /** Step ids in chronological order. */
  readonly steps: readonly string[];
  readonly durationMs: number;
}

/** The longest chain in O(E + V log V). A tie goes to the chain through steps defined first. */
export function findCriticalPath(steps: readonly TimedStep[]): CriticalPath {
  const { order } = createGraph(
    steps.map(({ id, dependencies }) => ({ id, depends_on: dependencies.map((at) => steps[at]?.id ?? '') })),
  );
  const doneMs = steps.map(() => 0);
  const before = steps.map(() => -1);
  let last = -1;
  for (const index of order) {
    const { dependencies = [], durationMs = null } = steps[index] ?? {};
    let latest = -1;
    for (const at of dependencies) if (latest < 0 || (doneMs[at] ?? 0) > (doneMs[latest] ?? 0)) latest = at;
    before[index] = latest;
    doneMs[index] = (doneMs[latest] ?? 0) + (durationMs ?? 0);
    const isLater = last < 0 || (doneMs[index] ?? 0) > (doneMs[last] ?? 0);
    if (durationMs !== null && (isLater || latest === last)) last = index;
  }
  const chain: string[] = [];
  for (let at = last; at >= 0; at = before[at] ?? -1) {
    const step = steps[at];
    if (step !== undefined && step.durationMs !== null) chain.push(step.id);
  }
  return { steps: chain.reverse(), durationMs: doneMs[last] ?? 0 };
}
