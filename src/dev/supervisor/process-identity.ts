/**
 * Tells a living process from another one that was given the same number later, which is common where a
 * container restarts with the same few numbers: the mark of a process never occurs twice.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

function readLinuxMark(pid: number): string | null {
  try {
    const status = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = status.slice(status.lastIndexOf(')') + 2).split(' ');
    const [state, startedAtTick] = [fields[0], fields[19]];
    if (state === 'Z' || startedAtTick === undefined) return null;
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()}/${startedAtTick}`;
  } catch {
    return null;
  }
}

function readMarkByPs(pid: number): string | null {
  const { status, stdout } = spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' });
  return status === 0 && stdout.trim() !== '' ? stdout.trim() : null;
}

/** Null when there is no such process. */
export function readProcessMark(pid: number): string | null {
  return process.platform === 'linux' ? readLinuxMark(pid) : readMarkByPs(pid);
}

export interface ProcessIdentity {
  readonly pid: number;
  readonly mark: string;
}

/** @throws Error when the process is gone */
export function identifyProcess(pid: number): ProcessIdentity {
  const mark = readProcessMark(pid);
  if (mark === null) throw new Error(`process ${pid} is gone`);
  return { pid, mark };
}

export function isRunning(identity: ProcessIdentity): boolean {
  return readProcessMark(identity.pid) === identity.mark;
}

/** The command line of a process; null when there is no such process. */
export function readProcessCommand(pid: number): string | null {
  if (process.platform === 'linux') {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    } catch {
      return null;
    }
  }
  const { status, stdout } = spawnSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : null;
}
