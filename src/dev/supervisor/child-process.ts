/**
 * One run of a child: the leader of its own process group, with its output appended to a log file.
 *
 * A mark distinguishes a living process from a later one with the same number, which is common where a container
 * restarts with the same few numbers. No two processes have the same mark.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, renameSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findPortHolder } from '@capstan/core/errors/taken-port';

const logLimitBytes = 10 * 1024 * 1024;

export interface ChildSpec {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** Another user to run as; only root can ask for one. */
  readonly account: { readonly uid: number; readonly gid: number } | null;
  readonly logFile: string;
  readonly stopSignal: NodeJS.Signals;
  readonly stopGraceMs: number;
  readonly readyTimeoutMs: number;
  /** The ports that it listens on: while another process holds one, an answer there is not its own. */
  readonly ports?: readonly number[];
  /** Polled until true; a rejection counts as "not yet". */
  readonly isReady: (run: { pid: number; startedAt: Date }) => Promise<boolean>;
  /** Runs before every start and restart. */
  readonly prepare?: () => Promise<void>;
}

export interface ChildRun {
  readonly pid: number;
  readonly startedAt: Date;
  /** Resolves with a description of the exit; never rejects. */
  readonly ended: Promise<string>;
  readonly hasEnded: () => boolean;
}

function openLog(file: string): number {
  mkdirSync(dirname(file), { recursive: true });
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size > logLimitBytes) renameSync(file, `${file}.1`);
  return openSync(file, 'a', 0o600);
}

function awaitEnd(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(`could not be started: ${error.message}`));
    child.once('exit', (code, signal) =>
      resolve(signal === null ? `ended with exit code ${code}` : `ended by ${signal}`),
    );
  });
}

/** @throws Error when the program cannot be started */
export async function startChild(spec: ChildSpec): Promise<ChildRun> {
  await spec.prepare?.();
  const log = openLog(spec.logFile);
  const startedAt = new Date();
  let over = false;
  try {
    const child = spawn(spec.command, [...spec.args], {
      cwd: spec.cwd,
      env: spec.env,
      detached: true,
      stdio: ['ignore', log, log],
      ...(spec.account ?? {}),
    });
    const ended = awaitEnd(child).finally(() => {
      over = true;
    });
    if (child.pid === undefined) throw new Error(`${spec.name} ${await ended} (${spec.command})`);
    return { pid: child.pid, startedAt, ended, hasEnded: () => over };
  } finally {
    closeSync(log);
  }
}

/** Signals the whole process group; false when no process of it is left. */
export function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal);
  } catch {
    return false;
  }
}

/** Each child leads its group. */
function isHeldByAnother(port: number, { pid }: ChildRun): boolean {
  const holder = findPortHolder(port, pid);
  return holder !== null && holder.pid !== pid && holder.group !== pid;
}

async function isReady(spec: ChildSpec, run: ChildRun): Promise<boolean> {
  if (!(await spec.isReady(run).catch(() => false))) return false;
  return !(spec.ports ?? []).some((port) => isHeldByAnother(port, run));
}

/** @throws Error with the end of the log when the child ends, or is not ready in time */
export async function awaitReady(spec: ChildSpec, run: ChildRun): Promise<void> {
  const deadline = performance.now() + spec.readyTimeoutMs;
  while (!(await isReady(spec, run))) {
    if (run.hasEnded()) throw new Error(`${spec.name} ${await run.ended}\n${readLogTail(spec.logFile)}`);
    if (performance.now() > deadline) {
      const waited = `${spec.name} is not ready after ${spec.readyTimeoutMs / 1000} s`;
      throw new Error(`${waited}\n${readLogTail(spec.logFile)}`);
    }
    await sleep(50);
  }
}

/** Stops gracefully, then by force; returns when the leader and its whole group have ended. */
export async function stopChild(spec: ChildSpec, run: ChildRun): Promise<void> {
  if (!run.hasEnded()) signalGroup(run.pid, spec.stopSignal);
  const timeout = new AbortController();
  const force = sleep(spec.stopGraceMs, undefined, { signal: timeout.signal }).then(
    () => signalGroup(run.pid, 'SIGKILL'),
    () => undefined,
  );
  await run.ended;
  timeout.abort();
  await force;
  signalGroup(run.pid, 'SIGKILL');
}

function readLogTail(file: string): string {
  try {
    const text = readFileSync(file, 'utf8').trimEnd();
    const tail = text.split('\n').slice(-15);
    return [`last lines of ${file}:`, ...tail.map((line) => `  ${line}`)].join('\n');
  } catch {
    return `no log at ${file}`;
  }
}

/** The mark of a process on Linux; see the header. */
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
