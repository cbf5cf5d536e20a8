/**
 * Finds the program of the Temporal dev server: on the PATH, in the cache, else by the ways of ways.ts in their order.
 * A program that was brought here is kept in the cache, where it appears in one step. If every way fails, the error
 * gives the reason for each.
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findOnPath, isProgram } from '../programs.ts';
import type { PartReport } from '../progress.ts';
import { proven, type ServerSource, ways } from './ways.ts';

const run = promisify(execFile);

export interface TemporalProgram {
  readonly path: string;
  /** "PATH", "cache", … for people. */
  readonly origin: string;
  /** The version of the server inside, such as "1.29.1". */
  readonly version: string;
}

export interface SourceOptions {
  readonly cacheDir: string;
  readonly environment: NodeJS.ProcessEnv;
}

/** Capstan's folder in the user's cache folder. */
export function findCacheDir(environment: NodeJS.ProcessEnv, home: string): string {
  return join(environment.XDG_CACHE_HOME || join(home, '.cache'), 'capstan');
}

/** @throws Error when the file is not a Temporal command line that can run a server */
async function readVersion(path: string): Promise<string> {
  const { stdout } = await run(path, ['--version'], { timeout: 20_000 });
  const [, version] = /Server ([\d.]+)/.exec(stdout) ?? [];
  if (version === undefined) throw new Error(`${path} is no Temporal command line with a server`);
  return version;
}

function cachedPath(cacheDir: string, cli: string): string {
  return join(cacheDir, `temporal-${cli}`, 'temporal');
}

/** The program on the PATH or in the cache; null when there is none. */
export async function findPresentProgram(options: SourceOptions): Promise<TemporalProgram | null> {
  const candidates = [
    { path: await findOnPath('temporal', options.environment), origin: 'PATH' },
    ...Object.values(proven).map(({ cli }) => ({ path: cachedPath(options.cacheDir, cli), origin: 'cache' })),
  ];
  for (const { path, origin } of candidates) {
    if (path === null || !(await isProgram(path))) continue;
    const version = await readVersion(path).catch(() => null);
    if (version !== null) return { path, origin: `${path} (${origin})`, version };
  }
  return null;
}

const partialPrefix = 'temporal-partial-';

/** A start that was killed leaves its folder. No way takes an hour. */
async function removeLeftovers(cacheDir: string): Promise<void> {
  const before = Date.now() - 3_600_000;
  for (const name of await readdir(cacheDir)) {
    if (!name.startsWith(partialPrefix)) continue;
    const folder = join(cacheDir, name);
    const { mtimeMs } = await stat(folder).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }));
    if (mtimeMs < before) await rm(folder, { recursive: true, force: true });
  }
}

/** @throws Error when the way fails, or its program does not run here */
async function take(way: ServerSource, options: SourceOptions, report: PartReport): Promise<TemporalProgram> {
  const { cacheDir, environment } = options;
  const folder = await mkdtemp(join(cacheDir, partialPrefix));
  try {
    await way.bring({ folder, environment }, report);
    const version = await readVersion(join(folder, 'temporal'));
    const path = cachedPath(cacheDir, way.cli);
    await mkdir(join(path, '..'), { recursive: true });
    await rename(join(folder, 'temporal'), path);
    return { path, origin: `${way.origin}, kept at ${path}`, version };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** @throws Error with the reason for every way that failed */
export async function findTemporal(options: SourceOptions, report: PartReport): Promise<TemporalProgram> {
  const present = await findPresentProgram(options);
  if (present !== null) return present;
  await mkdir(options.cacheDir, { recursive: true });
  await removeLeftovers(options.cacheDir);
  const refusals: string[] = [];
  for (const way of ways) {
    try {
      return await take(way, options, report);
    } catch (error) {
      const refusal = `not ${way.origin}: ${error instanceof Error ? error.message : String(error)}`;
      refusals.push(refusal);
      report('note', refusal);
    }
  }
  throw new Error(
    `no Temporal server: none at TEMPORAL_ADDRESS, no temporal on the PATH; ${refusals.join('; ')}. ` +
      'Install the Temporal CLI (https://docs.temporal.io/cli) or Python with pip, or set TEMPORAL_ADDRESS',
  );
}
