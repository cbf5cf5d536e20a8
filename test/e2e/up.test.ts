/** `capstan up` under a real Capstan: all kinds of entries, each killed, and itself killed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CapabilityDetail, Instance } from '@capstan/core/contracts/capability';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { isRunning, type ProcessIdentity, readProcessMark } from '../../src/dev/supervisor/child-process.ts';
import { type SharedCapstan, shareCapstan } from '../support/shared-capstan.ts';
import { waitFor } from '../support/wait.ts';

let capstan: SharedCapstan;
let folder: string;
let up: ChildProcess;
const printed: string[] = [];

const program = `
import { createServer } from 'node:http';
const facts = { name: 'up.program', version: '1.0.0' };
const spec = { ...facts, description: 'Answers its process.', input: {}, output: {}, cost_model: { type: 'free', rate_usd: 0 } };
const answers = { '/health': { status: 'ok', ...facts, uptime_ms: 1 }, '/spec': spec };
createServer((request, response) => {
  request.resume();
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(answers[request.url] ?? { ok: true, output: { pid: process.pid } }));
}).listen(Number(process.env.PORT), process.env.HOST);
`;
const module = `
import { defineCapability } from '@capstan/capability';
export const capability = defineCapability({
  name: 'up.module', version: '1.0.0', description: 'Answers its process.', input: {}, output: {}, tags: [],
  cost_model: { type: 'free', rate_usd: 0 }, exec: () => ({ pid: process.pid }),
});
`;
/** Answers the process of the wraps. With the file \`gate\`, waits until it is gone. */
const script = `
const { existsSync, writeFileSync } = require('node:fs');
if (existsSync('gate')) writeFileSync('waits', String(process.ppid));
const timer = setInterval(() => existsSync('gate') || (clearInterval(timer), console.log(process.ppid)), 10);
`;

function aWrap(name: string): object {
  const inFolder = script.replaceAll("'gate'", JSON.stringify(join(folder, `${name}.gate`)));
  const text = inFolder.replaceAll("'waits'", JSON.stringify(join(folder, `${name}.waits`)));
  const argv = [process.execPath, '-e', text];
  const input = { type: 'object' };
  const result = { pid: '{{ answer }}' };
  const output = { type: 'object' };
  const command = { argv, stdout: 'json' };
  return {
    kind: 'command',
    name,
    version: '1.0.0',
    description: 'Answers its process.',
    input,
    output,
    result,
    command,
  };
}

const names = ['up.first', 'up.second', 'up.program', 'up.module'] as const;
type Name = (typeof names)[number];

async function writeFleet(secondSlots: number): Promise<void> {
  const capabilities = {
    first: { wrap: aWrap('up.first'), tags: ['local'] },
    second: { wrap: aWrap('up.second'), slots: secondSlots },
    program: { program: [process.execPath, 'program.mjs'], cost: { type: 'per_call', rate_usd: 0.01 } },
    module: { module: 'module' },
  };
  await writeFile(
    join(folder, 'fleet.json'),
    JSON.stringify({ host: { name: 'up.host', slots: 9 }, capabilities }),
  );
}

function start(): void {
  up = spawn(
    process.execPath,
    [join(inject('packageFolder'), 'bin/capstan.mjs'), 'up', join(folder, 'fleet.json')],
    {
      env: {
        ...process.env,
        ROUTER_URL: capstan.url,
        ROUTER_TOKEN: capstan.key,
        MEDIA_URL: capstan.mediaUrl,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  for (const stream of [up.stdout, up.stderr])
    stream?.setEncoding('utf8').on('data', (text) => printed.push(text));
}

async function instanceOf(name: Name): Promise<Instance | undefined> {
  const { body } = await capstan.request<CapabilityDetail>('GET', `/v1/capabilities/${name}`);
  return body.instances?.find(({ state, spec_digest }) => state === 'up' && spec_digest !== null);
}

/** Waits for a registration after `before`. */
function registered(name: Name, before?: Instance): Promise<Instance> {
  return waitFor(`the registration of ${name}`, async () => {
    const found = await instanceOf(name);
    const since = Date.parse(before?.registered_at ?? '1970-01-01');
    return found !== undefined && Date.parse(found.registered_at) > since ? found : undefined;
  });
}

function all<Value>(act: (name: Name) => Promise<Value>): Promise<Record<Name, Value>> {
  const entries = names.map(async (name) => [name, await act(name)] as const);
  return Promise.all(entries).then((done) => Object.fromEntries(done) as Record<Name, Value>);
}

async function processOf({ endpoint }: Pick<Instance, 'endpoint'>): Promise<ProcessIdentity> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${endpoint}/exec`, { method: 'POST', headers, body: '{}' });
  const { output } = (await response.json()) as { output: { pid: number } };
  return { pid: output.pid, mark: readProcessMark(output.pid) ?? '' };
}

beforeAll(async () => {
  capstan = await shareCapstan();
  folder = await mkdtemp(join(tmpdir(), 'capstan-up-'));
  await mkdir(join(folder, 'module'));
  await writeFile(join(folder, 'module/package.json'), '{"type": "module", "main": "index.js"}');
  await writeFile(join(folder, 'module/index.js'), module);
  await writeFile(join(folder, 'program.mjs'), program);
  await writeFleet(1);
  start();
});
afterAll(async () => {
  if (up.exitCode === null && up.signalCode === null) {
    const gone = once(up, 'exit');
    up.kill('SIGTERM');
    await gone;
  }
  await rm(folder, { recursive: true, force: true });
});

test('registers wraps, programs and modules; a killed one comes back at its address', async () => {
  const before = await all((name) => registered(name));
  expect(before['up.first']).toMatchObject({ tags: ['local'], host: { name: 'up.host', slots: 9 } });
  expect(before['up.program'].cost_model).toEqual({ type: 'per_call', rate_usd: 0.01 });
  const processes = await all((name) => processOf(before[name]));
  expect(processes['up.first'].pid).toBe(processes['up.second'].pid);
  const others = [up.pid, processes['up.program'].pid, processes['up.module'].pid];
  expect(new Set([...others, processes['up.first'].pid]).size).toBe(4);
  for (const name of ['up.program', 'up.module', 'up.first'] as const)
    process.kill(processes[name].pid, 'SIGKILL');
  const after = await all((name) => registered(name, before[name]));
  for (const name of names) {
    expect(after[name].endpoint).toBe(before[name].endpoint);
    expect((await processOf(after[name])).pid).not.toBe(processes[name].pid);
  }
});

test('the process of the wraps is killed in mid-run: the run waits for it and succeeds', async () => {
  const before = await all((name) => registered(name));
  const [gate, waits] = [join(folder, 'up.first.gate'), join(folder, 'up.first.waits')];
  await writeFile(gate, '');
  const { run_id: runId } = await capstan.submit([{ id: 'work', capability: 'up.first', input: {} }]);
  const serving = await waitFor('the call', () => readFile(waits, 'utf8').catch(() => ''));
  process.kill(Number(serving), 'SIGKILL');
  await rm(gate);
  expect(await capstan.ended(runId)).toMatchObject({ state: 'succeeded' });
  for (const name of ['up.first', 'up.second'] as const) await registered(name, before[name]);
});

test('applies a changed file at SIGHUP, and leaves the others alone', async () => {
  const before = await all((name) => registered(name));
  const processes = await all((name) => processOf(before[name]));
  await writeFleet(3);
  up.kill('SIGHUP');
  const changed = await waitFor('the change', async () => {
    const found = await instanceOf('up.second');
    return found?.max_concurrency === 3 ? found : undefined;
  });
  expect(changed.endpoint).toBe(before['up.second'].endpoint);
  expect(await all((name) => processOf(before[name]))).toEqual(processes);
});

test('leaves nothing behind when it is killed; after its next start all are back', async () => {
  const before = await all((name) => registered(name));
  const processes = Object.values(await all((name) => processOf(before[name])));
  expect(processes.every(isRunning)).toBe(true);
  up.kill('SIGKILL');
  await waitFor('the end of all processes', () => !processes.some(isRunning));
  start();
  const after = await all((name) => registered(name, before[name]));
  for (const name of names) expect(after[name].endpoint).toBe(before[name].endpoint);
});

test('deregisters all at SIGTERM', async () => {
  const gone = once(up, 'exit');
  up.kill('SIGTERM');
  expect(await gone).toEqual([0, null]);
  expect(Object.values(await all(instanceOf))).toEqual(names.map(() => undefined));
});
