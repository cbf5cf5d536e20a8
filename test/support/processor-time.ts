/**
 * What something computes, in milliseconds of a processor of a usual machine that does nothing else. Processor time does
 * not grow while others wait, but it does on a slow machine, and while the other half of a core computes something
 * else: a loop that is always the same says by how much.
 */
import { readFileSync } from 'node:fs';

const loopSteps = 2_000_000;
const loopMs = 2;
/** Less than this is told as it is. */
const worthwhileMs = 20;

/** Keeps the loop from being left out. */
let sum = 1;

function readProcessMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** How many times as long as usual the loop takes now; at least 1. */
function measureSlowness(readMs: () => number): number {
  const start = readMs();
  for (let step = 0; step < loopSteps; step++) sum = (Math.imul(sum, 31) + step) | 0;
  return Math.max(1, (readMs() - start) / loopMs);
}

function count(readMs: () => number): () => number {
  const start = readMs();
  return () => {
    const spentMs = readMs() - start;
    return spentMs < worthwhileMs ? spentMs : spentMs / measureSlowness(readMs);
  };
}

/** Other work on the machine is no fault of what is tested. @returns what this process has computed since the call */
export function countProcessorMs(): () => number {
  return count(readProcessMs);
}

function readThreadMs(): number {
  return Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[0]) / 1e6;
}

/** Of the calling thread alone, on Linux. @returns the same as `countProcessorMs` */
export function countThreadMs(): () => number {
  return count(readThreadMs);
}
