/** Tools that checks of what is shipped need: got once by the ordinary means of their language, and kept in the cache. */
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { findCacheDir, findGo, findOnPath } from '../../src/dev/temporal/source.ts';
import { runCommand } from '../package/run-command.ts';

const cache = findCacheDir(process.env, homedir());

/** A folder of the cache appears whole or not at all, also when two make it at once. */
export async function makeWhole(folder: string, make: (partial: string) => Promise<void>): Promise<void> {
  const partial = `${folder}.${process.pid}`;
  await mkdir(partial, { recursive: true });
  try {
    await make(partial);
    await rename(partial, folder).catch((error: unknown) => {
      if (!existsSync(folder)) throw error;
    });
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
}

export interface GoProgram {
  /** Without its version. */
  readonly module: string;
  readonly version: string;
  /** What `go install` calls it. */
  readonly name: string;
  /** Its name here, if its own is too short to explain it. */
  readonly label?: string;
}

/** @returns its path @throws Error when there is no Go to build it with */
export async function ensureGoProgram({ module, version, name, label = name }: GoProgram): Promise<string> {
  const folder = join(cache, `${label}-${version}`);
  const path = join(folder, name);
  if (existsSync(path)) return path;
  const go = await findGo(process.env);
  if (go === null) throw new Error(`${label} ${version} is built with Go, and there is none on the PATH`);
  console.log(`    building ${label} ${version} with go install, once`);
  await makeWhole(folder, async (partial) => {
    const environment = { ...process.env, GOBIN: partial, CGO_ENABLED: '0' };
    const command = [go, 'install', `${module}@v${version}`];
    await runCommand(command, { cwd: partial, environment, timeoutMs: 1_800_000 });
  });
  return path;
}

/** @param requirement as pip takes it, with its version @returns the path of its program */
export async function ensurePythonProgram(requirement: string, name: string): Promise<string> {
  const folder = join(cache, requirement.replace('==', '-'));
  const path = join(folder, 'bin', name);
  if (existsSync(path)) return path;
  const python = await findOnPath('python3', process.env);
  if (python === null) throw new Error(`${name} needs Python 3, and there is none on the PATH`);
  await rm(folder, { recursive: true, force: true });
  await runCommand([python, '-m', 'venv', folder], { cwd: cache });
  await runCommand([join(folder, 'bin/pip'), 'install', '--quiet', requirement], { cwd: cache });
  return path;
}
