/** Passes events on in batches, so that a large run leaves time for the user. */
import type { RunEvent } from '@capstan/core/contracts/event';

const mostMs = 250;
const stepsPerMs = 8;

/** The interval between two renders: it grows with the number of steps; with 2,000 there are four a second. */
function paceMs(steps: number): number {
  return Math.min(mostMs, steps / stepsPerMs);
}

export interface PacedEvents {
  readonly take: (events: readonly RunEvent[]) => void;
  /** Passes on the rest. */
  readonly end: () => void;
}

export function paceEvents(
  countSteps: () => number,
  apply: (events: readonly RunEvent[]) => void,
): PacedEvents {
  let gathered: RunEvent[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    const some = gathered;
    gathered = [];
    if (some.length > 0) apply(some);
  };
  return {
    take: (events) => {
      gathered.push(...events);
      timer ??= setTimeout(flush, paceMs(countSteps()));
    },
    end: flush,
  };
}
