/** Calls that continue, batch after batch on all routers, while something happens. */
import type { CallOrder, CallReport } from '../support/router-messages.ts';
import type { Stage } from './stage.ts';

export interface Load {
  /** Lets the last batch end. @returns how every call ended */
  end(): Promise<readonly CallReport[]>;
}

/** @param batch the next calls @param concurrency calls in flight in each router */
export function startLoad(stage: Stage, batch: () => readonly CallOrder[], concurrency: number): Load {
  const reports: CallReport[] = [];
  let isOver = false;
  const going = (async () => {
    while (!isOver) reports.push(...(await stage.runEverywhere(batch(), concurrency)));
  })();
  going.catch(() => undefined);
  return {
    end: async () => {
      isOver = true;
      await going;
      return reports;
    },
  };
}
