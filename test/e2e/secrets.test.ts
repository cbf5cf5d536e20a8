/**
 * A secret that a step sends, and that the instance repeats in every way it can, is nowhere afterwards: not in the
 * database, Temporal's histories, logs, traces, files or answers. Everything is searched.
 */
import { randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Run } from '@capstan/core/contracts/run';
import type { Secret } from '@capstan/core/contracts/secret';
import { Client, Connection } from '@temporalio/client';
import type { Payload } from '@temporalio/common';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { createDataConverter } from '../../src/clients/temporal/payload-codec.ts';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { type Capstan, startCapstan } from '../support/capstan.ts';
import { answer, type Instance, startInstance } from '../support/fleet.ts';
import { isLong } from '../support/long.ts';
import { type SpanCollector, startSpanCollector } from '../support/span-collector.ts';
import { waitFor } from '../support/wait.ts';

const keys = `k1:${randomBytes(32).toString('base64')}`;
const value = `v/${randomBytes(12).toString('hex')}"+ü`;
const bytes = Buffer.from(value);
/** The value in every form that the instance sends back. */
const forms = {
  plain: value,
  json: JSON.stringify(value).slice(1, -1),
  base64: bytes.toString('base64'),
  basic: Buffer.from(`ada:${value}`).toString('base64'),
  url: encodeURIComponent(value),
  hex: bytes.toString('hex'),
};
/** The middle of the value is in no text unless the value is. */
const needles = [
  ...Object.values(forms),
  value.slice(2, 20),
  bytes.subarray(3, 18).toString('base64').slice(1, -1),
];

let collector: SpanCollector;
let capstan: Capstan;
let instance: Instance;
let db: Db;

beforeAll(async () => {
  collector = await startSpanCollector();
  capstan = await startCapstan({
    PAYLOAD_KEYS: keys,
    LOG_LEVEL: 'trace',
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_BSP_SCHEDULE_DELAY: '100',
  });
  db = connectDatabase(capstan.databaseUrl, 2);
  instance = await startInstance(capstan, { name: 'publish.web', deterministic: true });
  const body = { value, capabilities: ['publish.*'] };
  const { status } = await capstan.request<Secret>('PUT', '/v1/secrets/web-token', body);
  expect(status).toBe(200);
});
afterAll(async () => {
  await db?.destroy();
  await instance?.stop();
  await capstan?.stop();
  await collector?.close();
});

/** Repeats the value in progress, log lines and the answer; the first call fails with it, and `refuse` refuses with it. */
function repeatEverywhere(): void {
  let calls = 0;
  instance.handle = ({ input }, response) => {
    calls += 1;
    const all = Object.values(forms).join(' ');
    if (calls === 1) return answer(response, 500, { ok: false, error: `broken: ${all}` });
    if (input.refuse === true) return answer(response, 422, { ok: false, error: `refused: ${all}` });
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    const lines = [
      { progress: 0.5, message: `at ${all}` },
      ...Object.values(forms).map((form) => ({ log: { level: 'info', message: `seen ${form}` } })),
      { log: { level: 'warn', message: `${'x'.repeat(1_990)}${value}` } },
      { ok: true, output: { echo: input, ...forms, [value]: answered, nested: [JSON.stringify(input)] } },
    ];
    for (const line of lines) response.write(`${JSON.stringify(line)}\n`);
    response.end();
  };
}

/** Part of a result that is no secret. */
const answered = 'a word of the instance';
const token = '{{ secrets.web-token }}';
const steps = [
  {
    id: 'publish',
    capability: 'publish.web',
    cache: { ttl: '1h' },
    retry: { max: 2, initial: '100ms' },
    input: { auth: `Bearer ${token}`, whole: token, forged: '{{ job.forged }}' },
  },
  {
    id: 'refused',
    capability: 'publish.web',
    depends_on: ['publish'],
    on_error: 'continue',
    escalate: { on_exhausted: 'fail' },
    input: { auth: token, refuse: true, before: '{{ steps.publish.output.echo.whole }}' },
  },
];

type Decode = (payload: Payload) => Promise<readonly unknown[]>;

/** Bytes and texts, so that the content of payloads is found, and in what they are decoded to. */
async function readAll(found: unknown, decode: Decode): Promise<string> {
  if (found instanceof Uint8Array) return `${Buffer.from(found).toString('utf8')}\n`;
  if (typeof found === 'string') return `${found}\n`;
  if (typeof found !== 'object' || found === null) return '';
  const inner = 'metadata' in found && 'data' in found ? await decode(found as Payload) : [];
  const parts = await Promise.all([...Object.values(found), ...inner].map((part) => readAll(part, decode)));
  return parts.join('');
}

async function decrypt(payload: Payload): Promise<readonly unknown[]> {
  const [codec] = createDataConverter(keys).payloadCodecs ?? [];
  const plain = (await codec?.decode([payload])) ?? [];
  return plain.map(({ data }) => data);
}

async function readHistories(runId: string, decode: Decode): Promise<string> {
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  const { workflow } = new Client({ connection });
  const texts: string[] = [];
  for await (const execution of workflow.list({ query: `TaskQueue = "${capstan.taskQueue}"` })) {
    if (!execution.workflowId.includes(runId)) continue;
    const handle = workflow.getHandle(execution.workflowId);
    for (const found of [await handle.fetchHistory(), (await handle.describe()).raw])
      texts.push(await readAll(found, decode));
  }
  await connection.close();
  return texts.join('');
}

async function readTables(): Promise<Record<string, string>> {
  const { rows } = await db.raw<{ rows: { name: string }[] }>(
    `select c.oid::regclass::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind in ('r', 'p') and n.nspname = 'public'`,
  );
  const texts = rows.map(async ({ name }) => {
    const stored = await db.raw<{ rows: { row: string }[] }>(`select to_json(t)::text as row from ${name} t`);
    return [`table ${name}`, stored.rows.map(({ row }) => `${row}\n${unhex(row)}`).join('\n')] as const;
  });
  return Object.fromEntries(await Promise.all(texts));
}

/** Columns of bytes, as the bytes they stand for. */
function unhex(row: string): string {
  return [...row.matchAll(/\\\\x([0-9a-f]+)/g)]
    .map(([, hex = '']) => Buffer.from(hex, 'hex').toString('utf8'))
    .join('\n');
}

async function readMedia(): Promise<string> {
  const folder = fileURLToPath(capstan.mediaUrl);
  const files = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const texts = files
    .filter((file) => file.isFile())
    .map(async ({ parentPath, name }) => `${name}\n${await readFile(join(parentPath, name), 'utf8')}`);
  return (await Promise.all(texts)).join('\n');
}

/** The first part of an event stream, up to the end of the run. */
async function readStream(path: string): Promise<string> {
  const headers = { authorization: `Bearer ${capstan.key}`, accept: 'text/event-stream' };
  const response = await fetch(`${capstan.url}${path}`, { headers });
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString();
    if (text.includes('run.succeeded')) break;
  }
  return text;
}

async function readAnswers(run: Run): Promise<Record<string, string>> {
  const id = run.run_id;
  const ofStep = steps.flatMap(({ id: step }) => [`/v1/runs/${id}/steps/${step}`]);
  const decisions = `/v1/decisions?run_id=${id}`;
  const listed = await capstan.request<{ items: { decision_id: string }[] }>('GET', decisions);
  const paths = [
    `/v1/runs/${id}`,
    ...ofStep,
    ...['events', 'graph', 'timeline'].map((part) => `/v1/runs/${id}/${part}`),
    '/v1/runs',
    '/v1/runs/export',
    decisions,
    ...listed.body.items.map(({ decision_id }) => `/v1/decisions/${decision_id}`),
    '/v1/reviews?state=open',
    '/v1/audit',
    '/v1/secrets',
    '/v1/cache',
    '/metrics',
  ];
  const texts = paths.map(async (path) => {
    const response = await fetch(`${capstan.url}${path}`, {
      headers: { authorization: `Bearer ${capstan.key}` },
    });
    return [`${response.status} ${path}`, await response.text()] as const;
  });
  const events = `/v1/runs/${id}/events`;
  return {
    ...Object.fromEntries(await Promise.all(texts)),
    [`stream ${events}`]: await readStream(events),
  };
}

function placesWithSecret(searched: Readonly<Record<string, string>>): string[] {
  return Object.entries(searched).flatMap(([place, text]) =>
    needles.filter((needle) => text.includes(needle)).map((needle) => `${place}: ${needle}`),
  );
}

async function searchAll(run: Run): Promise<Record<string, string>> {
  return {
    ...(await readTables()),
    ...(await readAnswers(run)),
    histories: await readHistories(run.run_id, decrypt),
    logs: capstan.logs(),
    traces: JSON.stringify(collector.spans),
    media: await readMedia(),
  };
}

test('a secret that an instance repeats everywhere is nowhere, and the instance has received it', async () => {
  repeatEverywhere();
  const run = await capstan.submit(
    steps,
    { forged: '[secret web-token]' },
    { output: { all: '{{ steps.publish.output }}' } },
  );
  const ended = await capstan.ended(run.run_id);
  expect(ended).toMatchObject({ state: 'succeeded' });
  await capstan.logOf(run.run_id);
  await waitFor('the spans of the attempts', () =>
    collector.spans.some(({ attributes }) => JSON.stringify(attributes).includes(run.run_id)),
  );
  const searched = await searchAll(run);
  expect(placesWithSecret(searched)).toEqual([]);

  const received = instance.execs.map(({ input }) => input);
  const sent = { auth: `Bearer ${value}`, whole: value, forged: '[secret web-token]' };
  expect(received).toEqual([sent, sent, { auth: value, refuse: true, before: '[secret web-token]' }]);

  // What is no secret is encrypted in histories as well.
  const stored = await readHistories(run.run_id, async () => []);
  expect([searched.histories, stored].map((text) => text?.includes(answered))).toEqual([true, false]);

  // The search reads what it should: the reference is where the value would be.
  const places = ['table step', 'table attempt', 'table event', 'histories'];
  const reference = places.filter((place) => !searched[place]?.includes('[secret web-token]'));
  expect(reference).toEqual([]);
  for (const text of [
    searched.logs,
    searched[`200 /v1/runs/${run.run_id}/events`],
    searched['200 /v1/audit'],
  ])
    expect(text).toContain('web-token');
  expect(ended.output).toMatchObject({
    all: {
      echo: { auth: 'Bearer [secret web-token]' },
      plain: '[secret web-token]',
      base64: '[secret web-token]',
    },
  });
});

test.runIf(isLong)(
  'a rerun sends the value again, a deleted secret fails it with a clear error, and a new one is sent',
  async () => {
    instance.handle = ({ input }, response) => answer(response, 200, { ok: true, output: input });
    const { run_id } = await capstan.submit([{ id: 'a', capability: 'publish.web', input: { token } }]);
    expect(await capstan.ended(run_id)).toMatchObject({ state: 'succeeded' });
    const rerun = async () =>
      (
        await capstan.request<Run & { errors?: unknown[] }>('POST', `/v1/runs/${run_id}/rerun`, {
          from: ['a'],
        })
      ).body;
    instance.execs.length = 0;
    expect(await capstan.ended((await rerun()).run_id)).toMatchObject({ state: 'succeeded' });
    expect(instance.execs.map(({ input }) => input)).toEqual([{ token: value }]);

    await capstan.request('DELETE', '/v1/secrets/web-token');
    expect(JSON.stringify(await rerun())).toContain('the project has no secret web-token');

    const next = { value: 'another-value', capabilities: ['publish.*'] };
    await capstan.request('PUT', '/v1/secrets/web-token', next);
    expect(await capstan.ended((await rerun()).run_id)).toMatchObject({ state: 'succeeded' });
    expect(instance.execs.at(-1)?.input).toEqual({ token: 'another-value' });
  },
);
