/** Events in handfuls, so that a large run that moves leaves time for whoever looks at it. */
import type { RunEvent } from '../../../../src/contracts/event.ts';

const mostMs = 250;
const stepsPerMs = 8;

/** Between two pictures of a run: the more steps it has, the more a picture costs; of 2,000 there are four a second. */
function paceMs(steps: number): number {
  return Math.min(mostMs, steps / stepsPerMs);
}

export interface PacedEvents {
  readonly take: (events: readonly RunEvent[]) => void;
  /** Hands on what is left. */
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
