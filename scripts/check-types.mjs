/**
 * Checks the types of the sources and of the console. The findings of the compiler are kept in node_modules/.cache/tsc,
 * so that it checks only changed files again, and those that depend on them. The compiler does not notice when a file
 * no longer declares a global or a module. So a digest covers all files that declare one; a new digest drops what is
 * kept.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const compiler = 'node_modules/typescript-7/bin/tsc';
const cache = 'node_modules/.cache/tsc';
const places = ['*.ts', '*.tsx'];

/** What files declare for others without an import; null where there is no git to find them. */
function digestDeclarations() {
  const found = spawnSync(
    'git',
    ['grep', '--untracked', '-lE', 'declare +(global|module)', '--', ...places],
    { encoding: 'utf8' },
  );
  const listed = spawnSync('git', ['ls-files', '-co', '--exclude-standard', '--', '*.d.ts', '*.d.mts'], {
    encoding: 'utf8',
  });
  if (found.status !== 0 || listed.status !== 0) return null;
  const digest = createHash('sha256');
  for (const file of `${found.stdout}${listed.stdout}`.split('\n').filter(existsSync))
    digest.update(`${file}\0`).update(readFileSync(file)).update('\0');
  return digest.digest('hex').slice(0, 16);
}

/** Options that keep what is found; what was found under other declarations goes. */
function keepIn(name, digest) {
  if (digest === null) return [];
  const file = `${name}.${digest}.json`;
  mkdirSync(cache, { recursive: true });
  for (const other of readdirSync(cache))
    if (other.startsWith(`${name}.`) && other !== file) rmSync(join(cache, other), { force: true });
  return ['--incremental', '--tsBuildInfoFile', join(cache, file)];
}

const digest = digestDeclarations();
for (const [name, project] of [
  ['sources', []],
  ['console', ['-p', 'packages/console']],
]) {
  if (process.argv.length > 2 && !process.argv.includes(name)) continue;
  const options = ['--noEmit', '--singleThreaded', ...keepIn(name, digest), ...project];
  const { status } = spawnSync(process.execPath, [compiler, ...options], { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
