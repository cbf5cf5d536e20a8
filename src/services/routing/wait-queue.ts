/**
 * Callers that wait for the same capability: one line per priority, in each one at a time and in order of arrival.
 * So a batch call that waits for the free instance holds up none that would pay.
 */
import type { Priority } from '../../contracts/primitives.ts';

export interface QueuedCall {
  readonly capability: string;
  readonly priority: Priority;
  /** On the clock of `performance.now()`. */
  readonly deadline: number;
}

export interface WaitQueue {
  /** Runs `work` when it is this caller's turn; answers `late` when the turn does not come before the deadline. */
  enter<Result>(place: QueuedCall, work: () => Promise<Result>, late: Result): Promise<Result>;
  /** Callers in all lines of the capability. */
  count(capability: string): number;
}

export function createWaitQueue(): WaitQueue {
  const tails = new Map<string, Promise<unknown>>();
  const counts = new Map<string, number>();

  const countBy = (capability: string, by: 1 | -1): void => {
    const count = (counts.get(capability) ?? 0) + by;
    if (count === 0) counts.delete(capability);
    else counts.set(capability, count);
  };

  return {
    enter: async ({ capability, priority, deadline }, work, late) => {
      const name = `${capability} ${priority}`;
      const ahead = tails.get(name) ?? Promise.resolve();
      let leave = (): void => undefined;
      const served = new Promise<void>((resolve) => {
        leave = resolve;
      });
      const tail = ahead.then(() => served);
      tails.set(name, tail);
      countBy(capability, 1);
      try {
        const isMyTurn = await beforeDeadline(ahead, deadline);
        return isMyTurn ? await work() : late;
      } finally {
        countBy(capability, -1);
        leave();
        if (tails.get(name) === tail) tails.delete(name);
      }
    },
    count: (capability) => counts.get(capability) ?? 0,
  };
}

function beforeDeadline(turn: Promise<unknown>, deadline: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, Math.max(0, deadline - performance.now()), false);
    void turn.then(() => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}
