/** Programs in any language, kept by `capstan capability start`. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, inject, it, onTestFinished } from 'vitest';
import { isRunning, readProcessMark } from '../../../src/dev/supervisor/child-process.ts';
import { isLong } from '../../../test/support/long.ts';
import { waitFor } from '../../../test/support/wait.ts';
import { startCapability } from '../src/bootstrap/start-capability.ts';
import { createLines, delayAfter, readSpec } from '../src/bootstrap/start-program.ts';
import { bindServer } from '../src/lifecycle/start-instance.ts';
import { startFakeRouter } from './support/fake-router.ts';
import { aFolder } from './support/folders.ts';
import { writePackage } from './support/packages.ts';

/** Answers its process id as output; `{"die": true}` is answered by its death. */
const program = `
import { createServer } from 'node:http';
const cost_model = { type: 'free', rate_usd: 0 };
const spec = { name: 'mortal', version: '1.0.0', description: 'Dies.', input: {}, output: {}, cost_model };
createServer(async (request, response) => {
  const body = (await request.toArray()).join('');
  if (body.includes('die')) process.kill(process.pid, 'SIGKILL');
  const answer = { '/health': { status: 'ok', name: 'mortal', version: '1.0.0', uptime_ms: 1, queue_depth: 2, resident: ['a'] }, '/spec': spec };
  response.end(JSON.stringify(answer[request.url] ?? { ok: true, output: { pid: process.pid, router: process.env.ROUTER_URL ?? null } }));
}).listen(Number(process.env.PORT), process.env.HOST);
`;

function aProgram(): Promise<string> {
  const start = [process.execPath, 'program.js'];
  return writePackage({ type: 'module', capstan: { start } }, { 'program.js': program });
}

async function askAll(endpoint: string, body: object = {}) {
  const response = await fetch(`${endpoint}/exec`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return ((await response.json()) as { output: { pid: number; router: string | null } }).output;
}

async function ask(endpoint: string, body: object = {}): Promise<number> {
  return (await askAll(endpoint, body)).pid;
}

it.runIf(isLong)(
  'starts a program again that dies, at the same address, and leaves it registered',
  async () => {
    const router = await startFakeRouter();
    onTestFinished(() => router.close());
    const lines: string[] = [];
    const instance = await startCapability({
      source: await aProgram(),
      cacheDir: await aFolder(),
      env: { ...process.env, PORT: undefined, ROUTER_URL: router.url, ROUTER_TOKEN: 't' },
      print: (line) => lines.push(line),
    });
    onTestFinished(() => instance.stop());
    const first = await ask(instance.endpoint);
    await ask(instance.endpoint, { die: true }).catch(() => undefined);
    await waitFor('the second registration', async () => router.said.length === 2);
    expect(await ask(instance.endpoint)).not.toBe(first);
    const about = lines.slice(lines.findIndex((line) => line.startsWith('7/8')) + 1);
    expect(about).toEqual([
      expect.stringMatching(/program\.js ended by SIGKILL; it is started again in 0\.5 s$/),
      expect.stringMatching(/^started again: GET \/health answered at attempt \d+$/),
    ]);
    await instance.stop();
    expect(router.said.map(({ method, body }) => [method, body.endpoint])).toEqual([
      ['POST', instance.endpoint],
      ['POST', instance.endpoint],
      ['DELETE', instance.endpoint],
    ]);
  },
);

it('hides the router from a program, which would register a second time, and registers what it reports', async () => {
  const router = await startFakeRouter();
  onTestFinished(() => router.close());
  const instance = await startCapability({
    source: await aProgram(),
    cacheDir: await aFolder(),
    env: { ...process.env, PORT: undefined, ROUTER_URL: router.url, ROUTER_TOKEN: 't' },
    print: () => undefined,
  });
  onTestFinished(() => instance.stop());
  expect(await askAll(instance.endpoint)).toMatchObject({ router: null });
  expect(router.said[0]?.body).toMatchObject({ resident: ['a'] });
  expect(router.said[0]?.body).not.toHaveProperty('queue_depth'); // it would be old on arrival
});

it('ends a program whose parent is killed', async () => {
  const args = ['capability', 'start', await aProgram(), '--no-register', '--cache-dir', await aFolder()];
  const parent: ChildProcess = spawn(
    process.execPath,
    [join(inject('packageFolder'), 'bin/capstan.mjs'), ...args],
    { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, PORT: undefined } },
  );
  onTestFinished(() => void parent.kill('SIGKILL'));
  let endpoint: string | undefined;
  if (parent.stdout !== null) {
    createInterface({ input: parent.stdout }).on('line', (line) => {
      if (line.startsWith('4/8')) endpoint = line.split(' ').at(-1);
    });
  }
  const pid = await waitFor('the program', () => ask(endpoint ?? '').catch(() => undefined));
  const child = { pid, mark: readProcessMark(pid) ?? '' };
  onTestFinished(() => {
    if (isRunning(child)) process.kill(pid, 'SIGKILL');
  });
  expect(isRunning(child)).toBe(true);
  parent.kill('SIGKILL');
  await waitFor('its end', async () => !isRunning(child));
});

it.each([
  [
    ['a\nb', 'c\n'],
    ['a', 'bc'],
  ],
  [
    ['1 %\r2 %\r', '3 %\r\nend\n'],
    ['1 %', '2 %', '3 %', 'end'],
  ],
  [
    ['x'.repeat(16 * 1024 + 1), '\n'],
    ['x'.repeat(16 * 1024), 'x'],
  ],
])('splits output into lines', (texts, expected) => {
  const lines: string[] = [];
  const push = createLines((line) => lines.push(line));
  for (const text of texts) push(text);
  expect(lines).toEqual(expected);
});

it('doubles the delay before a restart up to 30 s', () => {
  expect([1, 2, 3, 7, 8, 2_000].map(delayAfter)).toEqual([500, 1_000, 2_000, 30_000, 30_000, 30_000]);
});

it('names the fields of a spec that are wrong in one line', async () => {
  const server = createServer((_request, response) => {
    response.end(
      JSON.stringify({
        name: 'a',
        version: '',
        description: 'a',
        input: {},
        output: {},
        cost_model: { type: 'free', rate_usd: 0 },
        affinity: 5,
      }),
    );
  });
  onTestFinished(() => void server.close());
  const port = await bindServer(server, { host: '127.0.0.1', port: 0 });
  await expect(readSpec(`http://127.0.0.1:${port}`)).rejects.toThrow(
    /^\/spec: version: has 0 characters; at least 1 are allowed; affinity: expected a string, found the number 5$/,
  );
});
