import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

export interface ProcessSize {
  /** Its own pages; those of files come and go as the system likes. */
  readonly residentMib: number;
  readonly descriptors: number;
}

const pageBytes = 4_096;

/** Environment of a process that collects on a signal before it is measured. */
export const collectorEnvironment = {
  NODE_OPTIONS: `--import=${new URL('collect-on-signal.mjs', import.meta.url)}`,
};

/** Of a process on Linux. */
function measureProcess(pid: number): ProcessSize {
  const [, resident = 0, shared = 0] = readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ').map(Number);
  const residentMib = ((resident - shared) * pageBytes) / 1_048_576;
  return { residentMib, descriptors: readdirSync(`/proc/${pid}/fd`).length };
}

/**
 * Measures a process of `collectorEnvironment` by what it keeps.
 * @returns the least that was seen, at the latest after `waitMs`: emptied pages go back to the system a little later
 */
export async function measureKept(
  pid: number,
  isEnough: (size: ProcessSize) => boolean,
  waitMs: number,
): Promise<ProcessSize> {
  const deadline = performance.now() + waitMs;
  let least = measureProcess(pid);
  do {
    process.kill(pid, 'SIGUSR2');
    await sleep(500);
    const { residentMib, descriptors } = measureProcess(pid);
    least = {
      residentMib: Math.min(least.residentMib, residentMib),
      descriptors: Math.min(least.descriptors, descriptors),
    };
  } while (!isEnough(least) && performance.now() < deadline);
  return least;
}

/** Looks at a process ten times a second. @returns ends that, and gives the most that it had */
export function watchPeak(pid: number): () => number {
  let peakMib = measureProcess(pid).residentMib;
  const look = setInterval(() => {
    peakMib = Math.max(peakMib, measureProcess(pid).residentMib);
  }, 100);
  return () => {
    clearInterval(look);
    return peakMib;
  };
}
