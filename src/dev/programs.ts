/**
 * Starts this package's own programs: from sources through the TypeScript loader, or compiled. Finds programs of this
 * machine. A helper program is run to its end, checked for progress, and ended when this process ends.
 */

import { spawn } from 'node:child_process';
import { access, constants, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { delimiter, extname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';

export interface Program {
  readonly command: string;
  readonly args: readonly string[];
}

const extension = extname(import.meta.url);

/** False in a package, which is compiled. */
export const runsFromSources = extension === '.ts';

/** @param path without extension, relative to `src/`, such as "server" or "dev/temporal/download" */
export function findProgram(path: string): Program {
  const file = fileURLToPath(new URL(`../${path}${extension}`, import.meta.url));
  // The loader by its URL: its bare name would be resolved from the user's working directory.
  const loader = runsFromSources
    ? ['--import', pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href]
    : [];
  return { command: process.execPath, args: [...loader, file] };
}

// Programs of this machine.

export async function isProgram(file: string): Promise<boolean> {
  const isAllowed = await access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
  return isAllowed && (await stat(file)).isFile();
}

/** @param more folders to search after the PATH */
export async function findOnPath(
  name: string,
  environment: NodeJS.ProcessEnv,
  more: readonly string[] = [],
): Promise<string | null> {
  const folders = [...(environment.PATH ?? '').split(delimiter), ...more];
  for (const folder of folders.filter((entry) => entry !== '')) {
    const file = join(folder, name);
    if (await isProgram(file)) return file;
  }
  return null;
}

export function findGo(environment: NodeJS.ProcessEnv): Promise<string | null> {
  return findOnPath('go', environment, ['/usr/local/go/bin', '/opt/homebrew/bin']);
}

// Runs a helper program to its end, checks its progress, and stops it with this process.

interface ProgramOptions {
  readonly environment: NodeJS.ProcessEnv;
  readonly timeoutMs: number;
  readonly giveUpAfterMs?: number;
  /** Called once, after `giveUpAfterMs`; true: it has made progress. */
  readonly isUnderWay?: () => Promise<boolean>;
  /** Called for every line on standard error. */
  readonly onLine?: (line: string) => void;
}

/** @throws Error with its last line when it fails, or takes too long */
export async function runProgram(
  command: string,
  args: readonly string[],
  options: ProgramOptions,
): Promise<void> {
  const child = spawn(command, [...args], { env: options.environment, stdio: ['ignore', 'ignore', 'pipe'] });
  let lastLine = '';
  let refusal = '';
  createInterface({ input: child.stderr }).on('line', (line) => {
    if (line.trim() !== '') lastLine = line.trim();
    options.onLine?.(line);
  });
  const end = (reason: string) => {
    refusal = reason;
    child.kill('SIGKILL');
  };
  const endWithUs = () => child.kill('SIGKILL');
  process.once('exit', endWithUs);
  const limit = setTimeout(() => end(`not done after ${options.timeoutMs / 1000} s`), options.timeoutMs);
  const check = setTimeout(async () => {
    if ((await options.isUnderWay?.()) === false)
      end(`nothing after ${(options.giveUpAfterMs ?? 0) / 1000} s`);
  }, options.giveUpAfterMs);
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    if (code !== 0) throw new Error(refusal || lastLine || `exit code ${code}`);
  } finally {
    clearTimeout(limit);
    clearTimeout(check);
    process.off('exit', endWithUs);
  }
}
