/** Modules, kept by `capstan capability start` in a process of their own. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { expect, inject, it, onTestFinished } from 'vitest';
import { isRunning, readProcessMark } from '../../../src/dev/supervisor/child-process.ts';
import { findCompiled } from '../../../test/support/compiled.ts';
import { isLong } from '../../../test/support/long.ts';
import { waitFor } from '../../../test/support/wait.ts';
import { startFakeRouter } from './support/fake-router.ts';
import { aFolder } from './support/folders.ts';
import { writePackage } from './support/packages.ts';

/** Answers its process id; `{"die": true}` is answered by its death. */
function aMortalModule(): string {
  const sdk = pathToFileURL(findCompiled(inject('packageFolder'), 'packages/capability/src/index.ts')).href;
  return `
import { defineCapability } from ${JSON.stringify(sdk)};
export const capability = defineCapability({
  name: 'mortal-module',
  version: '1.0.0',
  description: 'Dies.',
  input: { type: 'object' },
  output: { type: 'object' },
  cost_model: { type: 'free', rate_usd: 0, notes: 'of the registration alone' },
  tags: ['local', 'gpu'],
  max_concurrency: 3,
  warm_up: { input: {}, timeout_s: 5 },
  exec: ({ die }) => {
    if (die) process.kill(process.pid, 'SIGKILL');
    return { pid: process.pid };
  },
});
`;
}

async function start() {
  const router = await startFakeRouter();
  onTestFinished(() => router.close());
  const folder = await writePackage({ type: 'module', main: 'mortal.js' }, { 'mortal.js': aMortalModule() });
  const args = ['capability', 'start', folder, '--cache-dir', await aFolder()];
  const child = spawn(process.execPath, [join(inject('packageFolder'), 'bin/capstan.mjs'), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, PORT: undefined, ROUTER_URL: router.url, ROUTER_TOKEN: 't' },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  await waitFor('the registration', () => router.said.length === 1);
  const endpoint = String(router.said[0]?.body.endpoint);
  const ask = async (body: object = {}): Promise<number> => {
    const answer = await fetch(`${endpoint}/exec`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return ((await answer.json()) as { output: { pid: number } }).output.pid;
  };
  return { router, child, lines, endpoint, ask };
}

it('starts a module again whose process is killed, at the same address, and leaves it registered', async () => {
  const { router, child, lines, endpoint, ask } = await start();
  const facts = { tags: ['local', 'gpu'], max_concurrency: 3, warm_up: { input: {}, timeout_s: 5 } };
  const cost_model = { type: 'free', rate_usd: 0, notes: 'of the registration alone' };
  expect(router.said[0]?.body).toMatchObject({ name: 'mortal-module', ...facts, cost_model });
  const first = await ask();
  expect(first).not.toBe(child.pid);
  await ask({ die: true }).catch(() => undefined);
  await waitFor('the second registration', () => router.said.length === 2);
  expect(await ask()).not.toBe(first);
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  expect((await exited)[0]).toBe(0);
  expect(router.said.map(({ method, body }) => [method, body.endpoint])).toEqual([
    ['POST', endpoint],
    ['POST', endpoint],
    ['DELETE', endpoint],
  ]);
  const steps = (from: number, to: number) => lines.slice(from, to).map((line) => line.slice(0, 3));
  expect(steps(0, 7)).toEqual(['1/8', '2/8', '3/8', '4/8', '5/8', '6/8', '7/8']);
  expect(lines[7]).toMatch(/ended by SIGKILL; it is started again in 0\.5 s$/);
  expect(lines).toContain('started again: the instance is ready');
  expect(lines.at(-1)).toMatch(/^8\/8 stop: deregistered/);
});

it.runIf(isLong)('ends the process of a module when its own is killed', async () => {
  const { child, ask } = await start();
  const pid = await ask();
  const serving = { pid, mark: readProcessMark(pid) ?? '' };
  expect(isRunning(serving)).toBe(true);
  child.kill('SIGKILL');
  await waitFor('its end', async () => !isRunning(serving));
});
