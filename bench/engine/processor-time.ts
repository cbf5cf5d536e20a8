/** Processor time from /proc: of a process with all its children, and of one by its threads. */
import { readdirSync, readFileSync } from 'node:fs';

/** The kernel counts in hundredths of a second for user space, whatever its own clock. */
const tickMs = 10;

interface ProcessRow {
  readonly parent: number;
  /** Own time, and that of children that have ended. */
  readonly ticks: number;
}

function readProcesses(): ReadonlyMap<number, ProcessRow> {
  const rows = new Map<number, ProcessRow>();
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const status = readFileSync(`/proc/${entry}/stat`, 'latin1');
      const fields = status
        .slice(status.lastIndexOf(')') + 2)
        .split(' ')
        .map(Number);
      const ticks = fields.slice(11, 15).reduce((sum, value) => sum + value, 0);
      rows.set(Number(entry), { parent: fields[1] ?? 0, ticks });
    } catch {
      // It ended while we read.
    }
  }
  return rows;
}

/** @param roots process ids by part @returns milliseconds by part; empty where there is no /proc */
export function readProcessorTime(roots: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  if (process.platform !== 'linux') return new Map();
  const rows = readProcesses();
  const partOf = new Map([...roots].map(([part, pid]) => [pid, part]));
  const times = new Map([...roots.keys()].map((part) => [part, 0]));
  for (const [pid, { ticks }] of rows) {
    let ancestor = pid;
    while (ancestor > 1 && !partOf.has(ancestor)) ancestor = rows.get(ancestor)?.parent ?? 0;
    const part = partOf.get(ancestor);
    if (part !== undefined) times.set(part, (times.get(part) ?? 0) + ticks * tickMs);
  }
  return times;
}

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
