/**
 * The program of the S3 server that tests use, versitygw: on the PATH, in the cache, or built once with `go install`
 * (about 100 s of processor time). Of several that need it at once one builds.
 */
import { access, constants, mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { runProgram } from '../../src/dev/temporal/run-program.ts';
import { findCacheDir, findGo, findOnPath } from '../../src/dev/temporal/source.ts';

const version = '1.8.0';
const goPackage = `github.com/versity/versitygw/cmd/versitygw@v${version}`;
const buildMs = 1_800_000;

export interface S3Program {
  /** Null when there is none; then `reason` says why. */
  readonly path: string | null;
  readonly reason: string;
}

function isProgram(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}

async function build(go: string, cacheDir: string, path: string): Promise<void> {
  const folder = await mkdtemp(join(cacheDir, 'versitygw-partial-'));
  try {
    console.error(`S3: building versitygw ${version} with go install for the tests (about 100 s, once)`);
    await runProgram(go, ['install', goPackage], {
      environment: { ...process.env, GOBIN: folder, CGO_ENABLED: '0' },
      timeoutMs: buildMs,
    });
    await mkdir(join(path, '..'), { recursive: true });
    await rename(join(folder, 'versitygw'), path);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** A builder that was killed leaves its mark; one this old is nobody's. */
async function isAbandoned(mark: string): Promise<boolean> {
  const found = await stat(mark).catch(() => null);
  return found !== null && Date.now() - found.mtimeMs > buildMs;
}

/** @returns whether this process builds */
async function takeMark(mark: string): Promise<boolean> {
  if (await isAbandoned(mark)) await rm(mark, { recursive: true, force: true });
  return mkdir(mark).then(
    () => true,
    () => false,
  );
}

async function buildOnce(go: string, cacheDir: string, path: string): Promise<void> {
  const mark = `${path}-${version}.building`;
  await mkdir(join(mark, '..'), { recursive: true });
  while (!(await isProgram(path))) {
    if (await takeMark(mark)) {
      try {
        return await build(go, cacheDir, path);
      } finally {
        await rm(mark, { recursive: true, force: true });
      }
    }
    await setTimeout(500);
  }
}

async function find(): Promise<S3Program> {
  const cacheDir = findCacheDir(process.env, homedir());
  const onPath = await findOnPath('versitygw', process.env);
  if (onPath !== null) return { path: onPath, reason: 'on the PATH' };
  const path = join(cacheDir, `versitygw-${version}`, 'versitygw');
  if (await isProgram(path)) return { path, reason: 'in the cache' };
  const go = await findGo(process.env);
  if (go === null)
    return { path: null, reason: 'tests of S3 are skipped: no versitygw on the PATH and no Go to build it' };
  try {
    await buildOnce(go, cacheDir, path);
    return { path, reason: 'built with go install' };
  } catch (error) {
    const reason = `tests of S3 are skipped: versitygw could not be built: ${error instanceof Error ? error.message : error}`;
    return { path: null, reason };
  }
}

let finding: Promise<S3Program> | undefined;

/** Says aloud when there is none. */
export async function findS3Program(): Promise<S3Program> {
  finding ??= find();
  const program = await finding;
  if (program.path === null) console.error(program.reason);
  return program;
}
