/**
 * Capabilities in other languages, as processes; and Python with the packages of `sdk/python/requirements.lock`, which is
 * installed once into the cache.
 */
import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { makeWhole } from '../../scripts/tools/ensure-program.ts';
import { findOnPath } from '../../src/dev/programs.ts';
import { findCacheDir } from '../../src/dev/temporal/source.ts';
import { waitFor } from './wait.ts';

export const sdk = fileURLToPath(new URL('../../sdk/python/', import.meta.url));

export interface Python {
  /** Null when there is none; then `reason` gives the cause. */
  readonly path: string | null;
  readonly reason: string;
}

const run = promisify(execFile);

async function install(): Promise<string> {
  const lock = join(sdk, 'requirements.lock');
  const digest = createHash('sha256').update(readFileSync(lock)).digest('hex');
  const folder = join(findCacheDir(process.env, homedir()), `python-${digest.slice(0, 16)}`);
  if (existsSync(folder)) return folder;
  const system = await findOnPath('python3', process.env);
  if (system === null) throw new Error('python3 is not on the PATH');
  await makeWhole(folder, async (partial) => {
    await run(system, ['-m', 'venv', partial]);
    const wanted = ['install', '--quiet', '--require-hashes', '-r', lock];
    await run(join(partial, 'bin/python'), ['-m', 'pip', ...wanted], { timeout: 600_000 });
  });
  return folder;
}

async function find(): Promise<Python> {
  try {
    return { path: join(await install(), 'bin/python'), reason: 'of the cache' };
  } catch (error) {
    const reason = error instanceof Error ? error.message.split('\n').slice(0, 3).join(' ') : String(error);
    return { path: null, reason: `skipped: the packages of the Python SDK are not there: ${reason}` };
  }
}

let finding: Promise<Python> | undefined;

/** Prints why there is none. */
export async function findPython(): Promise<Python> {
  finding ??= find();
  const python = await finding;
  if (python.path === null) console.error(python.reason);
  return python;
}

/** The sources of the SDK are on its path. */
export function pythonEnvironment(others: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const own = { PYTHONPATH: sdk, PYTHONUNBUFFERED: '1', PYTHONDONTWRITEBYTECODE: '1' };
  return { ...process.env, ...own, ...others };
}

/** A capability as a process that is registered. */
export interface RegisteredProgram {
  readonly endpoint: string;
  /** Its whole output. */
  readonly lines: readonly string[];
  /** Resolves to the first line that begins with the text. */
  printed(text: string): Promise<string>;
  /** Stops it. @returns its exit code, null when the signal killed it */
  end(signal?: NodeJS.Signals): Promise<number | null>;
}

/** @param environment with ROUTER_URL and ROUTER_TOKEN */
export async function startRegistered(
  command: readonly string[],
  environment: NodeJS.ProcessEnv,
): Promise<RegisteredProgram> {
  const [program = '', ...args] = command;
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, PORT: '0', ...environment },
  });
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const lines: string[] = [];
  createInterface({ input: child.stdout as Readable }).on('line', (line) => lines.push(line));
  const printed = (text: string): Promise<string> =>
    waitFor(`"${text}" of ${command.join(' ')}`, () => {
      const line = lines.find((one) => one.startsWith(text));
      if (line === undefined && child.exitCode !== null) throw new Error(`it ended: ${lines.join('\n')}`);
      return line;
    });
  const registered = await printed('register: ');
  return {
    lines,
    printed,
    endpoint: registered.split(' ').at(-1) ?? '',
    end: (signal = 'SIGTERM') => {
      child.kill(signal);
      return exited;
    },
  };
}

export function startPython(
  python: Python,
  script: string,
  environment: NodeJS.ProcessEnv,
): Promise<RegisteredProgram> {
  return startRegistered([python.path ?? '', script], pythonEnvironment(environment));
}
