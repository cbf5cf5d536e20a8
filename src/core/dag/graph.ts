/**
 * The dependency graph of a pipeline, by step index. The order is Kahn's with the first defined step
 * first among the ready ones, so a definition that is already in a valid order keeps it.
 * O(E + V log V).
 */
import { createIndexHeap } from './index-heap.ts';

export interface GraphStep {
  readonly id: string;
  readonly depends_on: readonly string[];
}

export interface Graph {
  /** Every step after all it depends on. Steps on a cycle, and after one, are left out. */
  readonly order: readonly number[];
  /** Per step what it depends on, each once, ascending. */
  readonly predecessors: readonly (readonly number[])[];
  /** Per step what depends on it, each once, ascending. */
  readonly successors: readonly (readonly number[])[];
}

/** Unknown ids are left out; of two steps with one id the first is meant. */
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
  const ready = createIndexHeap();
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
