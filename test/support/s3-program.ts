/**
 * The program of the S3 server for tests, versitygw: on the PATH, in the cache, or built once with `go install` (about
 * 100 s of processor time). Concurrent processes build it once.
 */
import { mkdir, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { ensureGoProgram } from '../../scripts/tools/ensure-program.ts';
import { versitygw } from '../../scripts/tools/versitygw.ts';
import { findOnPath } from '../../src/dev/programs.ts';
import { findCacheDir } from '../../src/dev/temporal/source.ts';

export interface S3Program {
  /** Null when there is none; then `reason` gives the cause. */
  readonly path: string | null;
  readonly reason: string;
}

/** A killed builder leaves its mark; a mark this old is stale. */
const longestBuildMs = 1_800_000;

/** @returns whether this process builds */
async function takeMark(mark: string): Promise<boolean> {
  const found = await stat(mark).catch(() => null);
  if (found !== null && Date.now() - found.mtimeMs > longestBuildMs) await rm(mark, { recursive: true });
  return mkdir(mark).then(
    () => true,
    () => false,
  );
}

async function ensureOnce(): Promise<string> {
  const cacheDir = findCacheDir(process.env, homedir());
  const mark = join(cacheDir, `${versitygw.name}-${versitygw.version}.building`);
  await mkdir(cacheDir, { recursive: true });
  while (!(await takeMark(mark))) await setTimeout(500);
  try {
    return await ensureGoProgram(versitygw);
  } finally {
    await rm(mark, { recursive: true, force: true });
  }
}

async function find(): Promise<S3Program> {
  const onPath = await findOnPath(versitygw.name, process.env);
  if (onPath !== null) return { path: onPath, reason: 'on the PATH' };
  try {
    return { path: await ensureOnce(), reason: 'built with Go' };
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error);
    return { path: null, reason: `tests of S3 are skipped: ${cause}` };
  }
}

let finding: Promise<S3Program> | undefined;

/** Warns when there is none. */
export async function findS3Program(): Promise<S3Program> {
  finding ??= find();
  const program = await finding;
  if (program.path === null) console.error(program.reason);
  return program;
}
