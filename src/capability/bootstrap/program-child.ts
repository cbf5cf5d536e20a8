/**
 * One run of a program: a child in the process group of this process, and a guard beside it. The guard is a small shell
 * that reads from a pipe: when this process is gone, however it ended, the pipe closes, and the guard ends the program.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { localAddress } from '../settings.ts';

export interface ProgramCommand {
  /** The working directory of the program. */
  readonly folder: string;
  readonly command: readonly [string, ...string[]];
  readonly environment: NodeJS.ProcessEnv;
}

export interface ProgramPlace {
  readonly host: string;
  readonly port: number;
}

export interface ProgramRun {
  readonly process: ChildProcess;
  /** Its address on this machine. */
  readonly local: string;
  /** Says how it ended; never rejects. */
  readonly ended: Promise<string>;
}

const guardScript = `
trap '' HUP INT TERM
read -r _
kill -s TERM "$1" || exit 0
tries=100
while kill -s 0 "$1" && [ "$tries" -gt 0 ]; do
  sleep 0.1
  tries=$((tries - 1))
done
kill -s KILL "$1"
`;

function startGuard(pid: number): ChildProcess {
  const guard = spawn('/bin/sh', ['-c', guardScript, 'capstan-guard', String(pid)], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  guard.on('error', () => undefined);
  guard.stdin?.on('error', () => undefined);
  guard.unref();
  return guard;
}

export function runProgram(
  { command, folder, environment }: ProgramCommand,
  { host, port }: ProgramPlace,
): ProgramRun {
  const [program, ...args] = command;
  const child = spawn(program, args, {
    cwd: folder,
    env: { ...environment, HOST: host, PORT: String(port) },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const guard = child.pid === undefined ? null : startGuard(child.pid);
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(`${program} could not be started: ${error.message}`));
    child.once('exit', (code, signal) => {
      guard?.kill('SIGKILL'); // its number may soon be another process's
      resolve(`${command.join(' ')} ended ${signal === null ? `with exit code ${code}` : `by ${signal}`}`);
    });
  });
  return { process: child, local: localAddress(host, port), ended };
}

/** On SIGTERM it may end its calls within the limit. */
export async function stopProgram({ process, ended }: ProgramRun, limitMs: number): Promise<void> {
  process.kill('SIGTERM');
  const force = setTimeout(() => process.kill('SIGKILL'), limitMs);
  await ended;
  clearTimeout(force);
}
