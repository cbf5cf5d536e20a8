/** Callers that wait for the same thing, one at a time and in order of arrival. */
export interface WaitingLine {
  /**
   * Runs `work` when it is this caller's turn; answers `late` when the turn does not come before the deadline.
   * @param deadline on the clock of `performance.now()`
   */
  enter<Result>(name: string, deadline: number, work: () => Promise<Result>, late: Result): Promise<Result>;
}

export const createWaitingLine = (): WaitingLine => {
  const tails = new Map<string, Promise<unknown>>();
  return {
    enter: async (name, deadline, work, late) => {
      const ahead = tails.get(name) ?? Promise.resolve();
      let leave = (): void => undefined;
      const served = new Promise<void>((resolve) => {
        leave = resolve;
      });
      const tail = ahead.then(() => served);
      tails.set(name, tail);
      try {
        const isMyTurn = await beforeDeadline(ahead, deadline);
        return isMyTurn ? await work() : late;
      } finally {
        leave();
        if (tails.get(name) === tail) tails.delete(name);
      }
    },
  };
};

const beforeDeadline = (turn: Promise<unknown>, deadline: number): Promise<boolean> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, Math.max(0, deadline - performance.now()), false);
    void turn.then(() => {
      clearTimeout(timer);
      resolve(true);
    });
  });
