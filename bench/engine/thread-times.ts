/** Processor time of a process by its threads, from /proc: which of them are Temporal's Core, which Node's. */
import { readdirSync, readFileSync } from 'node:fs';

const tickMs = 10;

interface Ticks {
  readonly name: string;
  readonly ticks: number;
}

function readTicks(file: string): Ticks {
  const status = readFileSync(file, 'latin1');
  const end = status.lastIndexOf(')');
  const fields = status.slice(end + 2).split(' ');
  return { name: status.slice(status.indexOf('(') + 1, end), ticks: Number(fields[11]) + Number(fields[12]) };
}

/** A thread may end while it is read. */
function readThread(file: string): Ticks {
  try {
    return readTicks(file);
  } catch {
    return { name: 'ended threads', ticks: 0 };
  }
}

/** @returns milliseconds by name of the thread; `ended threads` have run since the start of the process */
export function readThreadTimes(pid: number): ReadonlyMap<string, number> {
  const times = new Map<string, number>();
  let left = readTicks(`/proc/${pid}/stat`).ticks;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const { name, ticks } = readThread(`/proc/${pid}/task/${thread}/stat`);
    times.set(name, (times.get(name) ?? 0) + ticks * tickMs);
    left -= ticks;
  }
  return times.set('ended threads', left * tickMs);
}
