import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, expect, inject, it, vi } from 'vitest';
import { type FakeRouter, startFakeRouter } from '../../../packages/capability/test/support/fake-router.ts';
import { aFolder } from '../../../packages/capability/test/support/folders.ts';
import { aShoutModule, writePackage } from '../../../packages/capability/test/support/packages.ts';
import { runCapstan } from '../../../src/cli/program.ts';
import { findCompiled } from '../../support/compiled.ts';
import { aShell } from '../support/shell.ts';

const children: ChildProcess[] = [];
let router: FakeRouter | undefined;
afterEach(() => {
  router?.close();
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

function startCommand(args: readonly string[], env: Record<string, string> = {}) {
  const program = [join(inject('packageFolder'), 'bin/capstan.mjs'), ...args];
  const child = spawn(process.execPath, program, { env: { ...process.env, ...env }, stdio: 'pipe' });
  children.push(child);
  const printed = { text: '' };
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed.text += text;
    });
  }
  return { child, printed, exited: once(child, 'close').then(([code]) => code) };
}

async function check(words: readonly string[]) {
  const { shell, seen } = aShell();
  await runCapstan(words, shell);
  return seen;
}

const deadline = { timeout: 60_000, interval: 20 };

it('starts an npm package from the cache, which `check` approves, until SIGTERM', async () => {
  router = await startFakeRouter();
  const { said, url } = router;
  const manifest = { name: 'shout', version: '2.0.0', type: 'module', main: 'shout.js' };
  const sdk = pathToFileURL(findCompiled(inject('packageFolder'), 'packages/capability/src/index.ts'));
  const folder = await writePackage(manifest, { 'shout.js': aShoutModule(sdk.href) });
  const packed = await promisify(execFile)('npm', ['pack', '--silent'], { cwd: folder });
  const cacheDir = await aFolder();
  const args = ['capability', 'start', join(folder, packed.stdout.trim()), '--cache-dir', cacheDir];
  const instance = startCommand(args, { ROUTER_URL: url, ROUTER_TOKEN: 't', PORT: '0' });
  await vi.waitFor(() => expect(instance.printed.text).toContain('7/8'), deadline);
  expect(await readdir(cacheDir)).toEqual(['packages']);

  const checked = await check(['check', String(said[0]?.body.endpoint), '--json']);
  expect(checked.exitCode).toBe(0);
  expect(JSON.parse(checked.stdout)).toContainEqual(expect.objectContaining({ name: 'GET /spec', ok: true }));

  instance.child.kill('SIGTERM');
  expect(await instance.exited).toBe(0);
  expect(said.map(({ method }) => method)).toEqual(['POST', 'DELETE']);
  expect(instance.printed.text.match(/^\d\/8/gm)).toEqual([
    '1/8',
    '2/8',
    '3/8',
    '4/8',
    '5/8',
    '6/8',
    '7/8',
    '8/8',
  ]);
});

it.each([[['check']], [['capability', 'check']]])('%j exits 1 when a check fails', async (command) => {
  const { exitCode, stdout, stderr } = await check([...command, 'http://127.0.0.1:9']);
  expect(exitCode).toBe(1);
  expect(stdout + stderr).toMatch(/FAIL {2}GET \/health: .*no answer/);
});
