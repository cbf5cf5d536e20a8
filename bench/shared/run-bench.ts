/**
 * What every bench that starts processes has in common. They end with the bench, however it ends: when it is done,
 * fails, is interrupted, or one of them dies; and also when it is killed.
 */
import { homedir } from 'node:os';
import { createTemporaryFolder } from '../../src/dev/data-folder.ts';
import { choosePort } from '../../src/dev/ports.ts';
import type { Report } from '../../src/dev/progress.ts';
import { createSupervisor, type Supervisor } from '../../src/dev/supervisor/supervisor.ts';
import { findCacheDir } from '../../src/dev/temporal/source.ts';

/** Where a bench starts its processes. */
export interface Place {
  readonly supervisor: Supervisor;
  readonly report: Report;
  /** Removed in the end. */
  readonly dataDir: string;
  readonly cacheDir: string;
  /** A free port that it has not given before. */
  nextPort(): Promise<number>;
  /** The names of processes that the bench kills itself. */
  readonly mayDie: Set<string>;
}

export function say(text: string): void {
  void process.stderr.write(`${text}\n`);
}

function createPlace(report: Report): Place {
  const dataDir = createTemporaryFolder('capstan-bench-');
  const ports = new Set<number>();
  let last = Promise.resolve(0);
  return {
    report,
    dataDir,
    cacheDir: findCacheDir(process.env, homedir()),
    mayDie: new Set(),
    supervisor: createSupervisor({ report, temporaryFolder: dataDir }),
    nextPort: () => {
      last = last.then((port) => choosePort([], ports.add(port)));
      return last;
    },
  };
}

type Bench = (place: Place) => Promise<boolean>;

/** @returns whether every bar was met */
async function play(bench: Bench): Promise<boolean> {
  let giveUp = (_reason: string): void => undefined;
  const givenUp = new Promise<false>((resolve) => {
    giveUp = (reason) => {
      say(reason);
      resolve(false);
    };
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => giveUp(`ended by ${signal}`));
  const place = createPlace(({ part, status, detail }) => {
    if (place.mayDie.has(part)) return;
    if (status === 'died') giveUp(`${part}: ${detail}`);
    else if (status !== 'working' && status !== 'ready') say(`${part}: ${detail}`);
  });
  const isMet = await Promise.race([bench(place), givenUp]).catch((error: unknown) => {
    say(error instanceof Error ? (error.stack ?? error.message) : String(error));
    return false;
  });
  await place.supervisor.stop();
  return isMet;
}

/** Ends the process: exit code 0 when every bar was met. The first bench that misses one is the last. */
export async function runBench(...benches: readonly Bench[]): Promise<never> {
  for (const bench of benches) if (!(await play(bench))) process.exit(1);
  process.exit(0);
}
