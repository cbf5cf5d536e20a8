import { readFileSync } from 'node:fs';

/** Other work on the machine is no fault of what is tested. @returns the processor time since the call, in milliseconds */
export function countProcessorMs(): () => number {
  const start = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1_000;
  };
}

function readThreadMs(): number {
  return Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[0]) / 1e6;
}

/** Of the calling thread alone, on Linux. @returns the same as `countProcessorMs` */
export function countThreadMs(): () => number {
  const start = readThreadMs();
  return () => readThreadMs() - start;
}
