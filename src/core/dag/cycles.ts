/**
 * Cycles of a graph. What topological order leaves out waits for something that is also left out, so
 * walking from one to the next must come round: every walk ends in a cycle, in O(V + E) altogether.
 */
import type { Graph } from './graph.ts';

/**
 * Disjoint cycles, at least one when there is any. Each depends on the next and the last on the first;
 * each starts at its first defined step.
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
