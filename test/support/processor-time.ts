/**
 * Measures computation, in milliseconds of a processor of a usual, idle machine. Processor time does not grow while
 * others wait, but it does on a slow machine, and while the other half of a core is busy: a constant loop measures by
 * how much.
 */
import { readFileSync } from 'node:fs';

const loopSteps = 2_000_000;
const loopMs = 2;
/** A smaller time is returned unscaled. */
const worthwhileMs = 20;

/** Keeps the compiler from removing the loop. */
let sum = 1;

function readProcessMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** The factor by which the loop is slower than usual; at least 1. */
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

/**
 * Measures this process only, so other work on the machine does not count. @returns the time computed since the call
 */
export function countProcessorMs(): () => number {
  return count(readProcessMs);
}

function readThreadMs(): number {
  return Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[0]) / 1e6;
}

/** Measures the calling thread only, on Linux. @returns like `countProcessorMs` */
export function countThreadMs(): () => number {
  return count(readThreadMs);
}
