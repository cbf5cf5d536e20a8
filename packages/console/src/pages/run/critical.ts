import type { RunStep } from '@capstan/core/contracts/run-step';
import { findCriticalPath } from '@capstan/core/graph/dag';
import { conditionOfStep } from '@capstan/core/run/run-status';
import type { DrawnEdge } from '../../graph/drawn-step.ts';
import { passedMs } from '../../graph/node-model.ts';

const fewest = 3;

/** Nothing waits for a step that was called off. */
function isCalledOff(step: RunStep): boolean {
  return conditionOfStep(step).kind === 'called_off';
}

/** Ids of the critical path so far, by the durations of its steps; empty for a short run. */
export function findCritical(
  steps: readonly RunStep[],
  edges: readonly DrawnEdge[],
  now: number,
): readonly string[] {
  if (steps.length < fewest) return [];
  const indexes = new Map(steps.map(({ id }, index) => [id, index]));
  const dependencies: number[][] = steps.map(() => []);
  for (const { from, to } of edges) {
    const source = indexes.get(from);
    const target = indexes.get(to);
    if (source !== undefined && target !== undefined) dependencies[target]?.push(source);
  }
  const timed = steps.map((step, index) => ({
    id: step.id,
    dependencies: dependencies[index] ?? [],
    durationMs: isCalledOff(step) ? null : passedMs(step, now),
  }));
  return findCriticalPath(timed).steps;
}
