/**
 * Local activities of a run, one at a time. Those that are under way together may be answered one by one at first and
 * together in a replay, where what the run asks for between two answers is asked for once; in turns, every answer comes
 * by itself, in the order of the questions, then and now.
 */
export type LocalTurns = <Result>(work: () => Promise<Result>) => Promise<Result>;

export function createLocalTurns(): LocalTurns {
  let last: Promise<unknown> | null = null;
  return (work) => {
    const mine = last === null ? work() : last.then(work, work);
    const over = (): void => {
      if (last === mine) last = null;
    };
    last = mine;
    mine.then(over, over);
    return mine;
  };
}
