/** Which states of a step are its last, which of them are good, and how far a run has come by them. */
import type { StepState } from '../../contracts/run.ts';

/** States that a step or item does not leave. */
export const endedStepStates: ReadonlySet<StepState> = new Set([
  'succeeded',
  'failed',
  'unknown',
  'skipped',
  'cancelled',
  'reused',
]);

/** How many of the steps have a result that others can use. */
export function countSucceeded(counts: Readonly<Partial<Record<StepState, number>>>): number {
  return (counts.succeeded ?? 0) + (counts.reused ?? 0);
}

/** How many of the steps have ended, of all that are counted. */
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
