/** The chain of steps that a run waits for longest, when every step starts as soon as all it depends on is done. */
import { createGraph } from './graph.ts';

export interface TimedStep {
  readonly id: string;
  /** Indexes. */
  readonly dependencies: readonly number[];
  /** Null = it does not happen, and holds up nobody. */
  readonly durationMs: number | null;
}

export interface CriticalPath {
  /** Ids, in the order of time. */
  readonly steps: readonly string[];
  readonly durationMs: number;
}

/** O(E + V log V). Of two chains that take as long, the one through steps defined first. */
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
