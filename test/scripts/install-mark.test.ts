/** A checkout whose dependencies are installed is not installed again. */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';

const run = promisify(execFile);
let checkout: string;

beforeEach(async () => {
  checkout = await mkdtemp(join(tmpdir(), 'capstan-install-'));
  for (const script of ['after-install.mjs', 'ensure-install.mjs', 'install-mark.mjs'])
    await cp(join(import.meta.dirname, '../../scripts', script), join(checkout, 'scripts', script));
  await depend({});
});

afterEach(() => rm(checkout, { recursive: true }));

/** Writes the two files of a package without dependencies. */
async function depend(more: object): Promise<void> {
  const facts = { name: 'checkout', version: '1.0.0' };
  const scripts = { prepare: 'node scripts/after-install.mjs', demo: 'node scripts/ensure-install.mjs' };
  await writeFile(join(checkout, 'package.json'), JSON.stringify({ ...facts, scripts }));
  const lock = { ...facts, lockfileVersion: 3, packages: { '': facts }, ...more };
  await writeFile(join(checkout, 'package-lock.json'), JSON.stringify(lock));
}

const environment = { ...process.env, NODE_ENV: 'development' };

async function npm(...args: readonly string[]): Promise<string> {
  return (await run('npm', [...args], { cwd: checkout, env: environment })).stderr;
}

test('npm ci by hand is enough until the lockfile changes', async () => {
  await npm('ci', '--offline');
  expect(await npm('run', '--silent', 'demo')).toBe('');
  await depend({ requires: true });
  expect(await npm('run', '--silent', 'demo')).toMatch(/^Installing the dependencies with npm ci/);
  expect(await npm('run', '--silent', 'demo')).toBe('');
});

test('an installation without what tests need is completed', async () => {
  await npm('ci', '--offline', '--omit=dev');
  expect(await npm('run', '--silent', 'demo')).toContain('Installed in');
});
