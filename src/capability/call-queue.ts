/** First come, first served places for the calls of one instance. Nothing is refused: a call too many waits. */
export interface CallQueue {
  /** Calls in work or waiting. */
  readonly depth: number;
  /** Runs `work` when a place is free; rejects with the signal's reason when it aborts before that. */
  run<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result>;
}

export function createCallQueue(places: number): CallQueue {
  const waiting: (() => void)[] = [];
  let working = 0;

  const enter = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const start = () => {
        signal.removeEventListener('abort', giveUp);
        working += 1;
        resolve();
      };
      const giveUp = () => {
        waiting.splice(waiting.indexOf(start), 1);
        reject(signal.reason);
      };
      if (signal.aborted) return reject(signal.reason);
      if (working < places) return start();
      signal.addEventListener('abort', giveUp, { once: true });
      waiting.push(start);
    });

  return {
    get depth() {
      return working + waiting.length;
    },
    run: async (signal, work) => {
      await enter(signal);
      try {
        return await work();
      } finally {
        working -= 1;
        waiting.shift()?.();
      }
    },
  };
}
