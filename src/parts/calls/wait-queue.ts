/** The calls of this process that wait for the same slots. */
import type { Priority } from '@capstan/core/contracts/primitives';
import { createTally } from '@capstan/core/tally';

export interface QueuedCall {
  readonly queue: string;
  readonly priority: Priority;
  /** On the clock of `performance.now()`. */
  readonly deadline: number;
}

export interface QueueTurn<Result> {
  /** Null when the turn did not come before the deadline, or the work had no result. */
  readonly result: Result | null;
  /** Callers before it that were not served while it waited. */
  readonly ahead: number;
}

export interface WaitQueue {
  /** Runs `work` in its turn. */
  enter<Result>(place: QueuedCall, work: () => Promise<Result | null>): Promise<QueueTurn<Result>>;
  /** Callers of all priorities. */
  count(queue: string): number;
}

/** The callers of one queue and priority. */
export interface CallerQueue {
  tail: Promise<unknown>;
  callers: number;
  served: number;
}

/**
 * Callers that wait for the same capability: one queue per priority, each first in, first out and one at a time. So a
 * batch call that waits for the free instance does not delay a caller that would pay.
 */
export function createWaitQueue(): WaitQueue {
  const queues = new Map<string, CallerQueue>();
  const counts = createTally();
  return {
    enter: async ({ queue: waited, priority, deadline }, work) => {
      const name = `${waited} ${priority}`;
      const queue = queues.get(name) ?? { tail: Promise.resolve(), callers: 0, served: 0 };
      queues.set(name, queue);
      const { tail: before, callers, served } = queue;
      let leave = (): void => undefined;
      const left = new Promise<void>((resolve) => {
        leave = resolve;
      });
      queue.tail = before.then(() => left);
      queue.callers += 1;
      counts.add(waited, 1);
      try {
        const result = (await beforeDeadline(before, deadline)) ? await work() : null;
        const ahead = Math.max(0, callers - (queue.served - served));
        if (result !== null) queue.served += 1;
        return { result, ahead };
      } finally {
        counts.add(waited, -1);
        queue.callers -= 1;
        leave();
        if (queue.callers === 0) queues.delete(name);
      }
    },
    count: counts.of,
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
