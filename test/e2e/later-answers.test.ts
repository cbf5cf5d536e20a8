/** Answers that come later, and outside events, while processes are killed and while Temporal does not answer. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import type { EventReceipt } from '@capstan/core/contracts/outside-event';
import type { Problem } from '@capstan/core/contracts/problem';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { type Capstan, startCapstan } from '../support/capstan.ts';
import { answer, type Instance, startInstance } from '../support/fleet.ts';
import { listMoneyBreaches } from '../support/invariants.ts';
import { isLong } from '../support/long.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { waitFor } from '../support/wait.ts';

let capstan: Capstan;
let temporal: TcpProxy;
let studio: Instance;
let db: Db;
/** By the name in the input. */
const addresses = new Map<string, string>();

beforeAll(async () => {
  temporal = await startTcpProxy(inject('temporalAddress'));
  const port = await freePort();
  capstan = await startCapstan({
    PORT: String(port),
    TEMPORAL_ADDRESS: temporal.address,
    HEARTBEAT_TIMEOUT_MS: '3000',
    PUBLIC_URL: `http://127.0.0.1:${port}`,
  });
  db = connectDatabase(capstan.databaseUrl, 2);
  studio = await startInstance(capstan, {
    name: 'render',
    cost_model: { type: 'per_call', rate_usd: 0.01 },
    async: { slot: 'freed' },
    max_concurrency: 8,
  });
  studio.handle = ({ input, headers }, response) => {
    addresses.set(String(input.who), String(headers['x-callback-url']));
    answer(response, 202, { ok: true });
  };
});
afterAll(async () => {
  await studio?.stop();
  await db?.destroy();
  await capstan?.stop();
  await temporal?.cut();
});

/** The address of the server stays the same after its death. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

function awaits(run_id: string, awaiting: 'callback' | 'event'): Promise<unknown> {
  return waitFor(`${run_id} to wait for ${awaiting}`, () =>
    db('step').where({ run_id, state: 'waiting', awaiting }).first(),
  );
}

/** @param more steps beside the call */
async function begin(who: string, more: readonly object[] = []): Promise<string> {
  const { run_id } = await capstan.submit([{ id: 'a', capability: 'render', input: { who } }, ...more]);
  await awaits(run_id, 'callback');
  return run_id;
}

function eventStep(who: string) {
  return { id: 'b', event: { name: 'shipped', key: who } };
}

/** The same delivery each time. */
async function sendShipped(who: string): Promise<EventReceipt> {
  const event = { key: who, id: who, payload: { to: who } };
  return (await capstan.request<EventReceipt>('POST', '/v1/events/shipped', event)).body;
}

async function expectGivenOnce(run_id: string, who: string): Promise<void> {
  const log = await db('event').where({ run_id, step_id: 'b', type: 'step.succeeded' });
  expect(log).toHaveLength(1);
  const events = await db('outside_event').where({ key: who }).select('payload', 'waiting');
  expect(events).toEqual([{ payload: { to: who }, waiting: 1 }]);
}

/** @returns status and code */
async function send(who: string, body: object): Promise<readonly [number, string | null]> {
  const answered = await fetch(String(addresses.get(who)), { method: 'POST', body: JSON.stringify(body) });
  return [answered.status, answered.status === 204 ? null : ((await answered.json()) as Problem).code];
}

function resultOf(who: string) {
  return { ok: true, output: { who, text: 'rendered' } };
}

const disturbances: readonly (readonly [string, () => Promise<void>, () => Promise<void>])[] = [
  ['nothing happens', async () => undefined, async () => undefined],
  ['the worker is dead', () => capstan.killWorker('SIGKILL'), () => capstan.startWorker()],
  ['the server was killed', () => restartServer(), async () => undefined],
  ['Temporal is away', () => temporal.cut(), () => temporal.restore()],
  ['the server is killed after it', async () => undefined, () => restartServer()],
];

async function restartServer(): Promise<void> {
  await capstan.killServer('SIGKILL');
  await capstan.startServer();
}

test.each(disturbances)(
  'a run continues with its answer and its event when %s',
  async (who, disturb, mend) => {
    const run_id = await begin(who, [eventStep(who)]);
    await awaits(run_id, 'event');
    await disturb();
    expect(await send(who, resultOf(who))).toEqual([204, null]);
    expect(await sendShipped(who)).toMatchObject({ waiting: 1, repeated: false });
    expect(await send(who, resultOf(who))).toEqual([409, 'callback_answered']);
    expect(await sendShipped(who)).toMatchObject({ waiting: 1, repeated: true });
    await mend();
    const run = await capstan.ended(run_id);
    expect(run).toMatchObject({ state: 'succeeded', cost_usd: 0.01, output: { b: { to: who } } });
    await expectGivenOnce(run_id, who);
  },
);

test('an event is given once whose server is killed while it comes, and that is sent again', async () => {
  const { run_id } = await capstan.submit([eventStep('dying')]);
  await awaits(run_id, 'event');
  const first = sendShipped('dying').catch(() => null);
  await restartServer();
  await first;
  expect(await sendShipped('dying')).toMatchObject({ waiting: 1 });
  expect(await capstan.ended(run_id)).toMatchObject({ state: 'succeeded', output: { b: { to: 'dying' } } });
  await expectGivenOnce(run_id, 'dying');
});

test('a cancelled run does not wait; the answer settles its cost', async () => {
  const run_id = await begin('cancelled');
  await capstan.request('POST', `/v1/runs/${run_id}/cancel`, {});
  expect((await capstan.ended(run_id)).state).toBe('cancelled');
  expect(await send('cancelled', resultOf('cancelled'))).toEqual([410, 'callback_late']);
  const attempts = await db('attempt').where({ run_id }).select('state', 'certainty', 'settled_nano');
  expect(attempts).toEqual([{ state: 'settled', certainty: 'exact', settled_nano: '10000000' }]);
});

test('a direct call waits on its connection', async () => {
  const asked = capstan.request<{ output: unknown }>('POST', '/v1/capabilities/render/exec', {
    input: { who: 'direct' },
  });
  await waitFor('the address', () => addresses.has('direct'));
  expect(await send('direct', resultOf('direct'))).toEqual([204, null]);
  expect((await asked).body.output).toEqual({ who: 'direct', text: 'rendered' });
});

const count = isLong ? 1_000 : 20;

test(`${count} are open at once, and no answer is lost`, { timeout: 300_000 }, async () => {
  const lists = Array.from({ length: 5 }, (_, list) =>
    Array.from({ length: count / 5 }, (__, at) => `many-${list}-${at}`),
  );
  const items = lists.flat();
  const beganAt = performance.now();
  const steps = lists.map((_, list) => ({
    id: `a${list}`,
    capability: 'render',
    for_each: { items: `{{ job.l${list} }}`, max_parallel: 200 },
    input: { who: '{{ item }}' },
  }));
  const job = Object.fromEntries(lists.map((names, list) => [`l${list}`, names]));
  const { run_id } = await capstan.submit(steps, job);
  await waitFor(
    'all to wait',
    async () => (await db('step').where({ run_id, awaiting: 'callback' })).length === count,
    240_000,
  );
  const openMs = performance.now() - beganAt;
  for (let at = 0; at < count; at += 20) {
    const sent = await Promise.all(items.slice(at, at + 20).map((who) => send(who, resultOf(who))));
    expect(sent.every(([status]) => status === 204)).toBe(true);
  }
  const sentMs = performance.now() - beganAt - openMs;
  const run = await capstan.ended(run_id, 240_000);
  expect(run).toMatchObject({ state: 'succeeded', cost_usd: count / 100 });
  if (isLong) {
    const ms = [openMs, sentMs, performance.now() - beganAt].map(Math.round);
    console.log(`${count} open after ${ms[0]} ms, answered in ${ms[1]} ms, run over after ${ms[2]} ms`);
  }
  expect(await listMoneyBreaches(db)).toEqual([]);
});
