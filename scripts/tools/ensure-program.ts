/** Tools that checks of what is shipped need: got once by the ordinary means of their language, and kept in the cache. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { findGo, findOnPath } from '../../src/dev/programs.ts';
import { findCacheDir } from '../../src/dev/temporal/source.ts';
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

export interface CargoProgram {
  readonly crate: string;
  readonly version: string;
  /** Of the binary. */
  readonly name: string;
  /** Instead of the crate's own defaults. */
  readonly features: readonly string[];
}

/** @returns its path @throws Error when there is no Rust to build it with */
export async function ensureCargoProgram(program: CargoProgram): Promise<string> {
  const { crate, version, name, features } = program;
  const folder = join(cache, `${crate}-${version}`);
  const path = join(folder, 'bin', name);
  if (existsSync(path)) return path;
  const cargo = await findOnPath('cargo', process.env);
  if (cargo === null)
    throw new Error(`${crate} ${version} is built with Rust, and there is no cargo on the PATH`);
  console.error(`    building ${crate} ${version} with cargo install, once`);
  await makeWhole(folder, async (partial) => {
    const own = ['--root', partial, '--locked', '--bin', name];
    const chosen = ['--no-default-features', '--features', features.join()];
    const command = [cargo, 'install', ...own, ...chosen, `${crate}@${version}`];
    await runCommand(command, { cwd: partial, timeoutMs: 5_400_000 });
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

/** @param requirement as pip takes it, with its version @returns the Python of an environment with it */
export async function ensurePythonEnvironment(requirement: string): Promise<string> {
  const folder = join(cache, `python-${requirement.replace('==', '-')}`);
  const python = (root: string): string => join(root, 'bin', 'python');
  if (existsSync(folder)) return python(folder);
  const found = await findOnPath('python3', process.env);
  if (found === null) throw new Error(`${requirement} needs Python 3, and there is none on the PATH`);
  console.log(`    installing ${requirement}, once`);
  await makeWhole(folder, async (partial) => {
    await runCommand([found, '-m', 'venv', partial], { cwd: cache });
    await runCommand([python(partial), '-m', 'pip', 'install', '--quiet', requirement], { cwd: cache });
  });
  return python(folder);
}

/** @param packages as npm takes them, with their versions @returns the folder of their `node_modules` */
export async function ensureNodePackages(label: string, packages: readonly string[]): Promise<string> {
  const digest = createHash('sha256').update(packages.join()).digest('hex').slice(0, 16);
  const folder = join(cache, `${label}-${digest}`);
  if (existsSync(folder)) return folder;
  console.log(`    installing ${packages.join(', ')}, once`);
  await makeWhole(folder, async (partial) => {
    const command = ['npm', 'install', '--no-audit', '--no-fund', '--prefix', partial, ...packages];
    await runCommand(command, { cwd: partial });
  });
  return folder;
}
