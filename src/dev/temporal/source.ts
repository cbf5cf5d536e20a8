/**
 * Finds the program of the Temporal dev server, in this order: on the PATH, in the cache, downloaded like the Temporal
 * SDK does, built with `go install` if there is a Go toolchain. A downloaded or built program is kept in the cache,
 * where it appears in one step. If every way fails, the error gives the reason for each.
 */
import { execFile } from 'node:child_process';
import { access, constants, mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { findProgram, runProgram } from '../programs.ts';
import type { PartReport } from '../progress.ts';

const run = promisify(execFile);

export const temporalVersion = '1.5.1';
const goPackage = `github.com/temporalio/cli/cmd/temporal@v${temporalVersion}`;

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

async function isProgram(file: string): Promise<boolean> {
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

/** Null when the file is not a Temporal command line that can run a server. */
async function readVersion(path: string): Promise<string | null> {
  const said = await run(path, ['--version'], { timeout: 20_000 }).catch(() => null);
  return /Server ([\d.]+)/.exec(said?.stdout ?? '')?.[1] ?? null;
}

function cachedPath(cacheDir: string): string {
  return join(cacheDir, `temporal-${temporalVersion}`, 'temporal');
}

/** The program on the PATH or in the cache; null when there is none. */
export async function findPresentProgram(options: SourceOptions): Promise<TemporalProgram | null> {
  const candidates = [
    { path: await findOnPath('temporal', options.environment), origin: 'PATH' },
    { path: cachedPath(options.cacheDir), origin: 'cache' },
  ];
  for (const { path, origin } of candidates) {
    if (path === null || !(await isProgram(path))) continue;
    const version = await readVersion(path);
    if (version !== null) return { path, origin: `${path} (${origin})`, version };
  }
  return null;
}

async function download(folder: string, report: PartReport, { environment }: SourceOptions) {
  report('working', `downloading the dev server ${temporalVersion} as the Temporal SDK does`);
  const { command, args } = findProgram('dev/temporal/download');
  let isUnderWay = false;
  await runProgram(command, [...args, folder, `v${temporalVersion}`], {
    environment,
    timeoutMs: 300_000,
    // A firewall may drop packets silently; then no file appears.
    giveUpAfterMs: 20_000,
    isUnderWay: async () => {
      isUnderWay ||= (await readdir(folder)).length > 0;
      return isUnderWay;
    },
  });
}

async function build(folder: string, report: PartReport, { environment }: SourceOptions) {
  const go = await findGo(environment);
  if (go === null) throw new Error('no Go toolchain on the PATH');
  const what = `building the dev server ${temporalVersion} with go install (about 150 s, once)`;
  report('working', what);
  let packages = 0;
  await runProgram(go, ['install', '-v', goPackage], {
    environment: { ...environment, GOBIN: folder, CGO_ENABLED: '0' },
    timeoutMs: 1_800_000,
    onLine: () => {
      packages += 1;
      report('working', `${what}: ${packages} packages`);
    },
  });
}

const ways = [
  { origin: 'downloaded', fetch: download },
  { origin: 'built with go install', fetch: build },
] as const;

/** Moves the only program in `folder` to its place in the cache. */
async function keep(folder: string, cacheDir: string): Promise<string> {
  const [name] = (await readdir(folder)).filter((entry) => entry.startsWith('temporal'));
  if (name === undefined) throw new Error('no program came of it');
  const path = cachedPath(cacheDir);
  await mkdir(join(path, '..'), { recursive: true });
  await rename(join(folder, name), path);
  return path;
}

/** @throws Error with the reason for every way that failed */
export async function findTemporal(options: SourceOptions, report: PartReport): Promise<TemporalProgram> {
  const present = await findPresentProgram(options);
  if (present !== null) return present;
  await mkdir(options.cacheDir, { recursive: true });
  const refusals: string[] = [];
  for (const way of ways) {
    const folder = await mkdtemp(join(options.cacheDir, 'temporal-partial-'));
    try {
      await way.fetch(folder, report, options);
      const path = await keep(folder, options.cacheDir);
      const version = await readVersion(path);
      if (version !== null) return { path, origin: `${way.origin}, kept at ${path}`, version };
      refusals.push(`${way.origin}: ${path} does not run here`);
    } catch (error) {
      refusals.push(`not ${way.origin}: ${error instanceof Error ? error.message : String(error)}`);
      report('note', refusals.at(-1) ?? '');
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
  throw new Error(
    `no Temporal server: none at TEMPORAL_ADDRESS, no temporal on the PATH; ${refusals.join('; ')}. ` +
      'Install the Temporal CLI (https://docs.temporal.io/cli) or Go, or set TEMPORAL_ADDRESS',
  );
}
