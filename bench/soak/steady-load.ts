/** Runs that begin at a steady pace, whether or not those before have ended. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Api } from '../../scripts/package/api.ts';
import { runOne } from '../growth/run-many.ts';

export interface SteadyLoad {
  readonly perSecond: number;
  readonly durationMs: number;
}

export interface SteadyEnd {
  readonly done: number;
  /** Begun later than a second after their time: the load was more than the machine's. */
  readonly late: number;
}

/** What is under way at most; more would be another test. */
const mostOpen = 500;

/** @throws Error when one does not succeed */
export async function runSteadily(api: Api, { perSecond, durationMs }: SteadyLoad): Promise<SteadyEnd> {
  const began = performance.now();
  const under = new Set<Promise<void>>();
  const faults: unknown[] = [];
  let late = 0;
  let n = 0;
  for (
    let due = began;
    due < began + durationMs && faults.length === 0;
    due = began + (++n * 1_000) / perSecond
  ) {
    await sleep(Math.max(0, due - performance.now()));
    if (performance.now() > due + 1_000) late += 1;
    while (under.size >= mostOpen) await Promise.race(under);
    const run: Promise<void> = runOne(api, { n, dispatch: 'queued' })
      .catch((fault: unknown) => void faults.push(fault))
      .finally(() => under.delete(run));
    under.add(run);
  }
  await Promise.all(under);
  if (faults.length > 0) throw faults[0];
  return { done: n, late };
}
