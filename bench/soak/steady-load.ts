/** Runs that begin at a steady pace, whether or not those before have ended. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Api } from '../../scripts/package/api.ts';
import { runOne } from '../growth/run-many.ts';

export interface SteadyLoad {
  readonly perSecond: number;
  readonly durationMs: number;
  /** Stops early; running work ends first. */
  readonly signal: AbortSignal;
}

/** How far it has come. */
export interface Progress {
  readonly hours: number;
  readonly done: number;
  /** Begun later than a second after their time: the load was more than the machine's. */
  readonly late: number;
  /** Seconds that each took as its client saw it, in the order in which they ended. */
  readonly seconds: readonly number[];
  /** Why one did not succeed, after which no other began. */
  readonly fault: string | null;
}

export interface SteadyRuns {
  progress(): Progress;
  /** Resolves when the last has ended. */
  ended(): Promise<void>;
}

/** The most that may be running; more would be another test. */
const mostOpen = 500;

export function runSteadily(api: Api, { perSecond, durationMs, signal }: SteadyLoad): SteadyRuns {
  const began = performance.now();
  const under = new Set<Promise<void>>();
  const seconds: number[] = [];
  let fault: string | null = null;
  let late = 0;
  let n = 0;
  const begin = (): void => {
    const from = performance.now();
    const run: Promise<void> = runOne(api, { n, dispatch: 'queued' })
      .then(
        () => void seconds.push((performance.now() - from) / 1_000),
        (thrown: unknown) => {
          fault ??= String(thrown);
        },
      )
      .finally(() => under.delete(run));
    under.add(run);
    n += 1;
  };
  const play = async (): Promise<void> => {
    for (let due = began; due < began + durationMs; due = began + (n * 1_000) / perSecond) {
      await sleep(Math.max(0, due - performance.now()));
      if (performance.now() > due + 1_000) late += 1;
      while (under.size >= mostOpen) await Promise.race(under);
      if (fault !== null || signal.aborted) break;
      begin();
    }
    await Promise.all(under);
  };
  const ending = play();
  return {
    progress: () => ({ hours: (performance.now() - began) / 3_600_000, done: n, late, seconds, fault }),
    ended: () => ending,
  };
}
