import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

export interface ProcessSize {
  readonly residentMib: number;
  readonly descriptors: number;
}

const pageBytes = 4_096;

/** Of a process on Linux. */
export function measureProcess(pid: number): ProcessSize {
  const pages = Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]);
  return { residentMib: (pages * pageBytes) / 1_048_576, descriptors: readdirSync(`/proc/${pid}/fd`).length };
}

/** The collector is in no hurry. @returns the least that was seen, at the latest after `waitMs` */
export async function settleProcess(
  pid: number,
  isEnough: (size: ProcessSize) => boolean,
  waitMs: number,
): Promise<ProcessSize> {
  const deadline = performance.now() + waitMs;
  let least = measureProcess(pid);
  while (!isEnough(least) && performance.now() < deadline) {
    await sleep(250);
    const { residentMib, descriptors } = measureProcess(pid);
    least = {
      residentMib: Math.min(least.residentMib, residentMib),
      descriptors: Math.min(least.descriptors, descriptors),
    };
  }
  return least;
}
