/**
 * One run of a child of `capstan up`: the leader of its own process group, so that a Ctrl-C of the terminal reaches
 * `capstan up` alone, and so that its own children end with it. Its output comes line by line.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLines } from '@capstan/capability/bootstrap/start-program';
import { signalGroup } from '../dev/supervisor/child-process.ts';
import type { Watchdog } from '../dev/supervisor/watchdog.ts';

export interface ProcessStart {
  readonly command: readonly [string, ...string[]];
  readonly folder: string;
  readonly environment: NodeJS.ProcessEnv;
  /** Receives each message; absent: the child has no channel for messages. */
  readonly onMessage?: (message: unknown) => void;
  readonly onLine: (line: string) => void;
}

export interface ProcessEnd {
  readonly reason: string;
  /** It ended by itself, with exit code 0. */
  readonly isClean: boolean;
  /** Its process was killed for another instance in it. */
  readonly isOfOther?: true;
}

export interface ProcessRun {
  /** Resolves when it and its group have ended; never rejects. */
  readonly ended: Promise<ProcessEnd>;
  readonly send: (message: object) => void;
  /** Sends SIGTERM to the group, and SIGKILL after the limit. */
  readonly stop: (limitMs: number) => Promise<void>;
  readonly kill: () => void;
}

function readLines(child: ChildProcess, onLine: (line: string) => void): void {
  for (const stream of [child.stdout, child.stderr]) {
    const push = createLines(onLine);
    stream?.setEncoding('utf8').on('data', push);
    // The last line may have no end.
    stream?.once('end', () => push('\n'));
  }
}

function describeExit(code: number | null, signal: NodeJS.Signals | null): ProcessEnd {
  const reason = signal === null ? `ended with exit code ${code}` : `ended by ${signal}`;
  return { reason, isClean: code === 0 };
}

/** The rest of its output is read, but a process that has left the group may keep the pipe open. */
const outputGraceMs = 1_000;

function awaitEnd(child: ChildProcess): Promise<ProcessEnd> {
  return new Promise((resolve) => {
    child.once('error', (error) => {
      if (child.pid === undefined)
        resolve({ reason: `could not be started: ${error.message}`, isClean: false });
    });
    child.once('exit', (code, signal) => resolve(describeExit(code, signal)));
  });
}

export function startProcess(start: ProcessStart, watchdog: Watchdog): ProcessRun {
  const [program, ...args] = start.command;
  const child = spawn(program, args, {
    cwd: start.folder,
    env: start.environment,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', ...(start.onMessage === undefined ? [] : (['ipc'] as const))],
  });
  readLines(child, (line) => void (line.trim() === '' || start.onLine(line)));
  if (start.onMessage !== undefined) child.on('message', start.onMessage);
  const { pid } = child;
  const closed = new Promise((resolve) => child.once('close', resolve));
  const ended = awaitEnd(child).then(async (end) => {
    if (pid === undefined) return end;
    signalGroup(pid, 'SIGKILL');
    watchdog.end(pid);
    await Promise.race([closed, sleep(outputGraceMs)]);
    return end;
  });
  if (pid !== undefined) watchdog.add(pid, 'SIGTERM');
  const signal = (name: NodeJS.Signals): void => {
    if (pid !== undefined && child.exitCode === null && child.signalCode === null) signalGroup(pid, name);
  };
  return {
    ended,
    send: (message) => void (child.connected && child.send(message, () => undefined)),
    stop: async (limitMs) => {
      signal('SIGTERM');
      const force = setTimeout(() => signal('SIGKILL'), limitMs);
      await ended;
      clearTimeout(force);
    },
    kill: () => signal('SIGKILL'),
  };
}
