/**
 * A program of Debian's that is not installed: its packages, with those of its libraries that this machine lacks, are
 * unpacked into the cache. Nothing is installed, and no service of theirs is started.
 */
import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { findOnPath } from '../../src/dev/programs.ts';
import { findCacheDir } from '../../src/dev/temporal/source.ts';
import { runCommand } from '../package/run-command.ts';
import { makeWhole } from './ensure-program.ts';

export interface DebianProgram {
  readonly package: string;
  /** Below the root of a file system. */
  readonly path: string;
}

/** With the libraries beside it; the program takes the place of the shell. */
function writeLauncher(path: string): string {
  return `#!/bin/sh
root=$(dirname "$(readlink -f "$0")")/root
for folder in "$root"/lib/*-linux-gnu* "$root"/usr/lib/*-linux-gnu*; do
  LD_LIBRARY_PATH=$folder\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
done
export LD_LIBRARY_PATH
exec "$root/${path}" "$@"
`;
}

/** @returns its path; null where there is no apt-get */
export async function ensureDebianProgram(
  { package: name, path }: DebianProgram,
  cache = findCacheDir(process.env, homedir()),
): Promise<string | null> {
  const folder = join(cache, `debian-${name}`);
  const start = join(folder, name);
  if (existsSync(start)) return start;
  if ((await findOnPath('apt-get', process.env)) === null) return null;
  console.log(`    unpacking Debian's ${name}, once`);
  await makeWhole(folder, async (partial) => {
    const root = join(partial, 'root');
    await mkdir(root);
    await unpack(await findPackages(name, partial), root);
    await writeFile(join(partial, name), writeLauncher(path));
    await chmod(join(partial, name), 0o755);
  });
  return start;
}

/** It, and what apt would install with it. @throws Error with apt's words when there is no such package */
async function findPackages(name: string, cwd: string): Promise<readonly string[]> {
  const simulate = () =>
    runCommand(['apt-get', 'install', '--simulate', '--no-install-recommends', name], { cwd });
  const printed = await simulate().catch(async () => {
    await runCommand(['apt-get', 'update'], { cwd }); // a new machine knows no packages yet
    return simulate();
  });
  const lacking = [...printed.matchAll(/^Inst (\S+)/gm)].map(([, found]) => found ?? '');
  return [...new Set([name, ...lacking])];
}

async function unpack(packages: readonly string[], root: string): Promise<void> {
  const downloads = join(root, '..', 'downloads');
  await mkdir(downloads);
  await runCommand(['apt-get', 'download', ...packages], { cwd: downloads });
  for (const file of await readdir(downloads)) {
    await runCommand(['dpkg', '--extract', file, root], { cwd: downloads });
  }
  await rm(downloads, { recursive: true });
}
