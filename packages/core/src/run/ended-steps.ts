/** The final states of a step, the successful ones among them, and the progress of a run by its counts. */
import type { StepState } from '../contracts/run-step.ts';

/** States that a step or item does not leave. */
export const endedStepStates: ReadonlySet<StepState> = new Set([
  'succeeded',
  'failed',
  'unknown',
  'skipped',
  'cancelled',
  'reused',
]);

/** The number of steps with a result that others can use. */
export function countSucceeded(counts: Readonly<Partial<Record<StepState, number>>>): number {
  return (counts.succeeded ?? 0) + (counts.reused ?? 0);
}

/** The number of steps that have ended, and of all counted steps. */
export function countEnded(counts: Readonly<Partial<Record<StepState, number>>>): {
  readonly ended: number;
  readonly all: number;
} {
  let ended = 0;
  let all = 0;
  for (const [state, count] of Object.entries(counts) as [StepState, number][]) {
    all += count;
    if (endedStepStates.has(state)) ended += count;
  }
  return { ended, all };
}
