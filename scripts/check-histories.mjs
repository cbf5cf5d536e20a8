/**
 * A recorded history is never changed while its engine version lives: the newest commit that touched it is the one that
 * added it, and the file is what that commit wrote. Prints nothing where there is no git.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = process.argv[2] ?? '.';
const logOf = ['log', '--raw', '--no-abbrev', '--no-renames', '--format=', '--', 'test/histories'];

/** What the newest commit that touched each history did: its status, and the blob that it wrote. */
function readNewest() {
  const { status, stdout } = spawnSync('git', logOf, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28 });
  const newest = new Map();
  if (status !== 0) return newest;
  for (const [, blob, change, file] of stdout.matchAll(/^:\d+ \d+ \w+ (\w+) (\w)\t(.+\.json)$/gm)) {
    if (!newest.has(file)) newest.set(file, { blob, change });
  }
  return newest;
}

/** Git's name of a file's content. */
function blobOf(file) {
  const content = readFileSync(file);
  return createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex');
}

for (const [file, { blob, change }] of readNewest()) {
  const path = join(root, file);
  if (!existsSync(path)) continue;
  const isSame = blobOf(path) === blob;
  if (change === 'A' && isSame) continue;
  const what = isSame ? 'was changed by a commit after the one that added it' : 'is not what was committed';
  console.error(
    `${file} ${what}: a history stays as it was recorded; record another one, or raise the version`,
  );
  process.exitCode = 1;
}
