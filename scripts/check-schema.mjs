/**
 * What a release has brought to databases: its migrations never change, and a function that differs from the release's
 * has a higher number than the release knows, so that processes of both agree which is newer. Compares with the newest
 * tag of a version below this commit; prints nothing where there is none.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = process.argv[2] ?? '.';
const [functions, migrations] = ['src/db/sql', 'src/db/migrations'];

function git(...words) {
  const { status, stdout } = spawnSync('git', words, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28 });
  return status === 0 ? stdout : '';
}

function numberOf(file, text) {
  const found = file.startsWith(functions) ? /^-- schema (\d+)/.exec(text) : /\/(\d+)-[^/]*$/.exec(file);
  return Number(found?.[1] ?? 0);
}

/** The files of a release with their texts. */
function readReleased(tag) {
  const files = git('ls-tree', '-r', '--name-only', tag, '--', functions, migrations).split('\n');
  const wanted = files.filter((file) => file.endsWith('.sql') || /\/\d+-[^/]*$/.test(file));
  return new Map(wanted.map((file) => [file, git('show', `${tag}:${file}`)]));
}

function findViolation(file, released, known) {
  const text = existsSync(join(root, file)) ? readFileSync(join(root, file), 'utf8') : null;
  const was = released.get(file);
  if (text === was) return null;
  if (file.startsWith(migrations))
    return was === undefined ? null : 'is applied already: write another migration';
  if (text === null || numberOf(file, text) > known) return null;
  return `has changed since: begin it with "-- schema ${known + 1}", or the number of a later migration that it needs`;
}

const tag = git('describe', '--tags', '--abbrev=0', '--match', 'v[0-9]*').trim();
if (tag !== '') {
  const released = readReleased(tag);
  const known = Math.max(0, ...[...released].map(([file, text]) => numberOf(file, text)));
  const present = readdirSync(join(root, functions), { recursive: true })
    .filter((file) => file.endsWith('.sql'))
    .map((file) => `${functions}/${file.replaceAll('\\', '/')}`);
  for (const file of new Set([...released.keys(), ...present])) {
    const violation = findViolation(file, released, known);
    if (violation === null) continue;
    console.error(`${file} ${violation} (${tag})`);
    process.exitCode = 1;
  }
}
