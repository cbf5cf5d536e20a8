/**
 * Streams of paid calls of a model, all at once, under a limit that admits a fifth of them: admission is exact, spent
 * is the sum of all charges, and nothing stays reserved, also when the server is killed, the provider goes or readers
 * stop. STREAMS sets how many; `npm run faults -- streams` opens 500 and prints the figures.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json, text } from 'node:stream/consumers';
import type { RunningInstance } from '@capstan/capability';
import type { Decision } from '@capstan/core/contracts/decision';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { serve } from '../../packages/capability/test/support/capabilities.ts';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { chatChunks } from '../support/model-wire.ts';
import { useMortalCapstan } from '../support/shared-capstan.ts';
import { waitFor } from '../support/wait.ts';
import { defineModel, priceAt } from '../support/wrapped-models.ts';

const streams = Number(process.env.STREAMS ?? 25);
const admitted = Math.floor(streams / 5);
const slowReaders = Math.min(5, Math.floor(admitted / 2));
const rateUsd = 0.1;
/** Of one call, by its request: the messages have the same length. */
let reservedUsd = 0;
const costUsd = 0.002;
/** A key may have so many requests open, and more a second. */
const streamsPerKey = 100;
const limitMs = 300_000 + streams * 1_000;

const capstan = useMortalCapstan();
let db: Db;
let instance: RunningInstance;

/** The provider: it sends the first half of each answer at once, and the second when it may. */
const asked: { readonly response: ServerResponse; isOver: boolean }[] = [];
let mayGoOn = Promise.resolve();
let goOn: () => void = () => undefined;
const [opening = '', first = '', ...rest] = chatChunks('small', {
  text: 'Hello, world',
  usage: [1_000, 500],
});
const long =
  chatChunks('small', { text: 'x'.repeat(7) })[1]?.replace('x'.repeat(7), 'x'.repeat(16_000)) ?? '';

async function answerSlowly(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  const { messages } = (await json(incoming)) as { messages: { content: string }[] };
  const call = { response, isOver: false };
  asked.push(call);
  const closed = once(response, 'close').then(() => {
    call.isOver = true;
  });
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write(opening + first);
  await mayGoOn;
  while (messages.at(-1)?.content === 'long' && !call.isOver)
    if (!response.write(long)) await Promise.race([once(response, 'drain'), closed]);
  if (!call.isOver) response.end(rest.join(''));
}

let provider: Server;
beforeAll(async () => {
  db = connectDatabase(capstan.databaseUrl, 2);
  provider = createServer((incoming, response) => {
    answerSlowly(incoming, response).catch((error: Error) => response.destroy(error));
  });
  await once(provider.listen(0, '127.0.0.1'), 'listening');
  const { file, part } = priceAt(rateUsd, [1, 2]);
  const capability = defineModel({
    name: 'model.crowded',
    url: `http://127.0.0.1:${(provider.address() as AddressInfo).port}/v1`,
    file: { ...file, max_concurrency: 2 * streams },
    part,
  });
  // Registered by hand: each server of this test has another address.
  instance = await serve(capability);
  const { endpoint } = instance;
  const { cost_model, tags, settle } = capability;
  const { name, version } = capability.spec;
  const places = { endpoint, spec_url: `${endpoint}/spec`, health_url: `${endpoint}/health` };
  const facts = { name, version, cost_model, tags, settle, max_concurrency: 2 * streams, shared_with: 'all' };
  const { status } = await capstan.request('POST', '/v1/capabilities', { ...facts, ...places });
  expect(status).toBe(201);
});
afterAll(async () => {
  goOn();
  await instance?.stop();
  provider?.closeAllConnections();
  provider?.close();
  await db?.destroy();
});

interface Stream {
  readonly status: number;
  /** What came until its end, or until it broke. */
  readonly body: Promise<string>;
}

/** @param content `long`: nothing of the answer is taken from the connection */
function openStream(key: string, content: string): Promise<Stream> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const url = `${capstan.url}/openai/v1/chat/completions`;
    const sent = request(url, { method: 'POST', headers, agent: false }, (response) => {
      const isRead = content !== 'long' || response.statusCode !== 200;
      const body = isRead ? text(response).catch((error: Error) => `broken: ${error.message}`) : '';
      resolve({ status: response.statusCode ?? 0, body: Promise.resolve(body) });
    });
    sent.once('error', reject);
    sent.end(JSON.stringify({ model: 'crowded', stream: true, messages: [{ role: 'user', content }] }));
  });
}

interface Project {
  readonly projectId: string;
  readonly keys: readonly string[];
}

async function aProjectWith(daily_limit_usd: number): Promise<Project> {
  const { body } = await capstan.request<{ project_id: string }>('POST', '/v1/projects', {
    name: 'streams',
    daily_limit_usd,
  });
  const wanted = { name: 'streams', scopes: ['admin'], projects: [body.project_id] };
  const making = Array.from({ length: Math.ceil(streams / streamsPerKey) }, () =>
    capstan.request<{ key: string }>('POST', '/v1/keys', wanted),
  );
  return { projectId: body.project_id, keys: (await Promise.all(making)).map((made) => made.body.key) };
}

/** A project whose day admits exactly so many calls: the last by its worst case, beside open ones at the rate. */
function aProject(): Promise<Project> {
  return aProjectWith(Number(((admitted - 1) * rateUsd + reservedUsd).toFixed(9)));
}

async function knowInstance(): Promise<void> {
  await waitFor('the router to know the instance', async () => {
    const input = { messages: [{ role: 'user', content: 'hush' }] };
    const { body } = await capstan.request<Decision>('POST', '/v1/route', {
      capability: 'model.crowded',
      input,
    });
    return body.chosen === instance.endpoint;
  });
}

/** What the router reserves for a call in the form that the instance gets. */
async function knowReservation(): Promise<void> {
  const { projectId, keys } = await aProjectWith(1);
  await (await openStream(keys[0] ?? '', 'hush')).body;
  const [made] = await db('attempt').where({ project_id: projectId }).select('reserved_nano');
  reservedUsd = Number(made.reserved_nano) / 1e9;
}

interface Figures {
  readonly attempts: number;
  readonly open: number;
  readonly estimated: number;
  readonly charged_nano: string;
  readonly ledger_nano: string;
  readonly spent_nano: string;
  readonly reserved_nano: string;
}

async function readFigures(projectId: string): Promise<Figures> {
  const { rows } = await db.raw<{ rows: [Figures] }>(
    `select count(*)::int as attempts, count(*) filter (where state in ('reserved', 'dispatched'))::int as open,
       count(*) filter (where certainty = 'estimated')::int as estimated,
       coalesce(sum(settled_nano), 0)::text as charged_nano,
       (select coalesce(sum(amount_nano), 0)::text from ledger_entry
         where project_id = :projectId and kind in ('settle', 'adjust')) as ledger_nano,
       (select sum(spent_nano)::text from budget where scope = :scope) as spent_nano,
       (select sum(reserved_nano)::text from budget where scope = :scope) as reserved_nano
     from attempt where project_id = :projectId`,
    { projectId, scope: `project:${projectId}` },
  );
  return rows[0];
}

interface Fault {
  readonly name: string;
  /** Readers that do not read; they are admitted before the others ask. */
  readonly slow?: number;
  /** Happens when all admitted answers have begun. @returns when the streams have ended */
  readonly during: () => Promise<unknown>;
}

interface Played {
  readonly bodies: readonly string[];
  readonly figures: Figures;
}

/** All are opened at once; those that are admitted have begun when the fault comes. */
async function play({ name, slow = 0, during }: Fault): Promise<Played> {
  await knowInstance();
  if (reservedUsd === 0) await knowReservation();
  const { projectId, keys } = await aProject();
  const before = asked.length;
  mayGoOn = new Promise((resolve) => {
    goOn = resolve;
  });
  const openAll = (count: number, content: string): Promise<Stream[]> => {
    const keyOf = (index: number): string => keys[index % keys.length] ?? '';
    return Promise.all(Array.from({ length: count }, (_, index) => openStream(keyOf(index), content)));
  };
  const opened = [...(await openAll(slow, 'long')), ...(await openAll(streams - slow, 'hush'))];
  const begun = opened.filter(({ status }) => status === 200);
  const refused = opened.filter(({ status }) => status !== 200);
  const codes = new Set(
    await Promise.all(refused.map(async ({ body }) => JSON.parse(await body).error.type)),
  );
  expect([begun.length, asked.length - before, [...codes]]).toEqual([
    admitted,
    admitted,
    ['insufficient_quota'],
  ]);
  await during();
  const bodies = await Promise.all(begun.map(({ body }) => body));
  await waitFor('nothing to be reserved', async () => (await readFigures(projectId)).open === 0);
  const figures = await readFigures(projectId);
  const shown = { fault: name, streams, admitted: begun.length, asked: asked.length - before, ...figures };
  if (process.env.STREAMS !== undefined) console.log(JSON.stringify(shown));
  const { charged_nano: charged } = figures;
  expect(figures).toMatchObject({ reserved_nano: '0', ledger_nano: charged, spent_nano: charged });
  expect(figures.attempts).toBe(admitted);
  expect(BigInt(charged)).toBeLessThanOrEqual(BigInt(Math.round(admitted * reservedUsd * 1e9)));
  expect(asked.length - before).toBe(admitted);
  return { bodies, figures };
}

function nano(usd: number): string {
  return String(Math.round(usd * 1e9));
}

test(
  `${streams} streams at once: ${admitted} are admitted, and each costs what its tokens cost`,
  async () => {
    const { bodies, figures } = await play({ name: 'none', during: async () => goOn() });
    for (const body of bodies) expect(body).toMatch(/"finish_reason":"stop"[\s\S]*\[DONE\]\n\n$/);
    expect(figures).toMatchObject({ charged_nano: nano(admitted * costUsd), estimated: 0 });
  },
  limitMs,
);

test(
  'the server is killed in mid-stream: each open call is charged once, as estimated',
  async () => {
    const { bodies, figures } = await play({
      name: 'server killed',
      during: async () => {
        await capstan.killServer('SIGKILL');
        await capstan.startServer();
        await waitFor('the provider to be left', () => asked.every(({ isOver }) => isOver));
      },
    });
    for (const body of bodies) expect(body).toMatch(/^broken|(?<!DONE\]\n\n)$/);
    expect(figures).toMatchObject({ charged_nano: nano(admitted * reservedUsd), estimated: admitted });
  },
  limitMs,
);

test(
  'readers that do not read are cut off, and the others get their answers',
  async () => {
    const { bodies } = await play({
      name: 'slow readers',
      slow: slowReaders,
      during: async () => {
        goOn();
        await waitFor('the slow ones to be cut off', () => asked.every(({ isOver }) => isOver));
      },
    });
    expect(bodies.filter((body) => body.endsWith('[DONE]\n\n')).length).toBeGreaterThanOrEqual(
      admitted - slowReaders,
    );
  },
  limitMs,
);

// The last one: the breaker of the instance is open after it.
test(
  'the provider goes in mid-stream: each stream ends with an error, and none goes to it again',
  async () => {
    const { bodies } = await play({
      name: 'provider gone',
      during: async () => provider.closeAllConnections(),
    });
    for (const body of bodies) expect(body).toMatch(/"error":\{[^\n]*(broke off|before it was complete)/);
  },
  limitMs,
);
