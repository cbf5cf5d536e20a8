/** Checks of this machine and this installation. */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import semver from 'semver';
import { isPortFree } from '../ports.ts';
import { findGo, findOnPath } from '../programs.ts';
import { findUnfit, readSystem } from '../system.ts';
import { type Check, type DoctorOptions, messageOf, missing, ok, warning } from './check.ts';

const run = promisify(execFile);
const require = createRequire(import.meta.url);

interface Manifest {
  readonly engines: { readonly node: string };
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
}

/** Our own package.json: above `src/` in a checkout, above `dist/src/` when compiled. */
function readManifest(): Manifest {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder);
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
}

export function checkNode(): Check {
  const wanted = readManifest().engines.node;
  const found = process.version;
  if (semver.satisfies(process.versions.node, wanted)) return ok('Node', found);
  return missing('Node', found, `install Node ${wanted} (https://nodejs.org)`);
}

export function checkSystem(): Check {
  const system = readSystem();
  const { platform, arch, glibc } = system;
  const found = `${platform} on ${arch}${glibc === null ? '' : `, glibc ${glibc}`}`;
  const unfit = findUnfit(system);
  return unfit === null ? ok('system', found) : missing('system', found, unfit);
}

function isInstalled(name: string): boolean {
  return (require.resolve.paths(name) ?? []).some((folder) => existsSync(join(folder, name, 'package.json')));
}

export function checkDependencies(): Check {
  const names = Object.keys(readManifest().dependencies);
  const absent = names.filter((name) => !isInstalled(name));
  if (absent.length === 0) return ok('dependencies', `${names.length} packages installed`);
  return missing('dependencies', `not installed: ${absent.join(', ')}`, 'run npm ci');
}

/** Optional for servers and workers: `capstan dev`, the samples and media in S3 need them. */
export function checkOptionalParts(): Check {
  const parts = Object.entries(readManifest().optionalDependencies);
  const absent = parts.filter(([name]) => !isInstalled(name)).map(([name, version]) => `${name}@${version}`);
  if (absent.length === 0) return ok('optional parts', `${parts.length} packages installed`);
  return ok('optional parts', `left out; npm install brings what is wanted of ${absent.join(', ')}`);
}

const mediaTools = { ffmpeg: '@ffmpeg-installer/ffmpeg', ffprobe: '@ffprobe-installer/ffprobe' } as const;

async function findMediaTool(name: keyof typeof mediaTools, environment: NodeJS.ProcessEnv) {
  const onPath = await findOnPath(name, environment);
  if (onPath !== null) return onPath;
  try {
    const { path }: { path: string } = require(mediaTools[name]);
    return path;
  } catch {
    return null;
  }
}

export function checkMediaTools({ environment }: DoctorOptions): Promise<Check[]> {
  return Promise.all(
    (['ffmpeg', 'ffprobe'] as const).map(async (name) => {
      const remedy = `install ffmpeg (apt install ffmpeg, brew install ffmpeg), or npm install ${mediaTools[name]}`;
      const path = await findMediaTool(name, environment);
      if (path === null) return warning(name, 'not found; the sample capabilities need it', remedy);
      try {
        const { stdout } = await run(path, ['-version'], { timeout: 20_000 });
        return ok(name, `${/version (\S+)/.exec(stdout)?.[1] ?? 'unknown version'} at ${path}`);
      } catch (error) {
        return warning(name, `${path} does not run: ${messageOf(error)}`, remedy);
      }
    }),
  );
}

export async function checkGo({ environment }: DoctorOptions): Promise<Check> {
  const go = await findGo(environment);
  if (go === null)
    return ok('Go', 'none; only needed to build the Temporal server where no other way is open');
  const { stdout } = await run(go, ['version'], { timeout: 20_000 });
  return ok('Go', `${stdout.trim().replace(/^go version /, '')} at ${go}`);
}

export async function checkPorts(): Promise<Check> {
  const usual = [7_400, 7_432, 7_233, 8_233];
  const free = await Promise.all(usual.map(isPortFree));
  const taken = usual.filter((_, index) => free[index] === false);
  if (taken.length === 0) return ok('ports', `${usual.join(', ')} are free`);
  return ok('ports', `taken: ${taken.join(', ')}; free ones are chosen instead`);
}

/** The nearest existing folder, at or above the path. */
function nearestFolder(path: string): string {
  return existsSync(path) ? path : nearestFolder(dirname(resolve(path)));
}

export function checkDataFolder({ dataDir }: DoctorOptions): Check {
  const folder = nearestFolder(resolve(dataDir));
  const probe = join(folder, `.capstan-probe-${process.pid}`);
  try {
    writeFileSync(probe, '');
    rmSync(probe);
    return ok('data folder', `${resolve(dataDir)} can be written`);
  } catch (error) {
    return missing('data folder', messageOf(error), 'choose another folder with --data');
  }
}

const enoughBytes = 1_000_000_000;
const leastBytes = 250_000_000;

export async function checkDisk({ dataDir }: DoctorOptions): Promise<Check> {
  const { bavail, bsize } = await statfs(nearestFolder(resolve(dataDir)));
  const free = bavail * bsize;
  const found = `${(free / 1e9).toFixed(1)} GB free`;
  if (free >= enoughBytes) return ok('disk', found);
  const remedy = 'free some space, or choose another disk with --data';
  return free >= leastBytes ? warning('disk', found, remedy) : missing('disk', found, remedy);
}
