/**
 * Runs one program to its end, in a process group of its own. When the signal aborts, the group gets SIGTERM, and
 * SIGKILL after a grace period. Children that outlive the program are killed. A guard ends the group when this process
 * is gone.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { CallFailure } from '@capstan/capability';
import { createLines, startGuard } from '@capstan/capability/bootstrap/start-program';

const keptOutput = 8 * 1024 * 1024;
const keptErrors = 8 * 1024;

export interface CommandStart {
  readonly program: string;
  readonly args: readonly string[];
  readonly folder: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly stdin: string | null;
  readonly graceMs: number;
  onLine(stream: 'stdout' | 'stderr', line: string): void;
}

export interface CommandEnd {
  /** Null: a signal ended it. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  /** `stdout` is incomplete. */
  readonly cut: boolean;
  /** The end of stderr, on one line. */
  readonly lastLines: string;
}

function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // The group has ended.
  }
}

/** Collects what the program prints. */
function readOutput(child: ChildProcess, { onLine }: CommandStart) {
  const printed = { stdout: '', stderr: '', cut: false };
  const lines = {
    stdout: createLines((line) => onLine('stdout', line)),
    stderr: createLines((line) => onLine('stderr', line)),
  };
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    printed.cut ||= printed.stdout.length + text.length > keptOutput;
    if (!printed.cut) printed.stdout += text;
    lines.stdout(text);
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    printed.stderr = (printed.stderr + text).slice(-keptErrors);
    lines.stderr(text);
  });
  return printed;
}

function lastLinesOf(stderr: string): string {
  const lines = stderr.split(/[\r\n]+/).filter((line) => line.trim() !== '');
  return lines.slice(-5).join(' ').slice(-600);
}

/** Resolves when the program is gone and its children are killed. @throws the reason of the signal, CallFailure when it cannot start */
export function runCommand(start: CommandStart, signal: AbortSignal): Promise<CommandEnd> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const { program, args, folder, environment } = start;
    const child = spawn(program, args, { cwd: folder, env: environment, detached: true, stdio: 'pipe' });
    const guard = child.pid === undefined ? null : startGuard(-child.pid);
    const printed = readOutput(child, start);
    let force: NodeJS.Timeout | undefined;
    const stop = (): void => {
      signalGroup(child, 'SIGTERM');
      force = setTimeout(() => signalGroup(child, 'SIGKILL'), start.graceMs);
    };
    signal.addEventListener('abort', stop, { once: true });
    child.stdin?.on('error', () => undefined); // the program need not read it
    child.stdin?.end(start.stdin ?? '');
    child.once('error', (error) => {
      const message = `${program} cannot be started: ${error.message}`;
      reject(new CallFailure(502, message, { code: 'command_missing', cause: error }));
    });
    child.once('exit', () => {
      guard?.kill('SIGKILL'); // its number may soon belong to another group
      signalGroup(child, 'SIGKILL');
    });
    child.once('close', (code, endSignal) => {
      clearTimeout(force);
      signal.removeEventListener('abort', stop);
      const { stdout, cut, stderr } = printed;
      if (signal.aborted) reject(signal.reason);
      else resolve({ code, signal: endSignal, stdout, cut, lastLines: lastLinesOf(stderr) });
    });
  });
}
