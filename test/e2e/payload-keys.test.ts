/** The data in Temporal is encrypted, and the keys are changed under an open run and a schedule. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Review } from '@capstan/core/contracts/review';
import type { Run, RunSummary } from '@capstan/core/contracts/run';
import type { Schedule } from '@capstan/core/contracts/schedule';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { createDataConverter } from '../../src/clients/temporal/payload-codec.ts';
import { connectDatabase } from '../../src/db/connect.ts';
import { type Capstan, startCapstan } from '../support/capstan.ts';
import { echo, type Instance, startInstance } from '../support/fleet.ts';
import { isLong } from '../support/long.ts';
import { decide } from '../support/reviews.ts';
import { waitFor } from '../support/wait.ts';

const word = 'a-word-of-nobody-else';
const [older, newer] = [0, 1].map((at) => `k${at}:${randomBytes(32).toString('base64')}`);

let capstan: Capstan;
let instance: Instance;
let file: string;
beforeAll(async () => {
  file = join(await mkdtemp(join(tmpdir(), 'capstan-keys-')), 'keys');
  await writeFile(file, `${older}`);
  capstan = await startCapstan({ PAYLOAD_KEYS: file });
  instance = await startInstance(capstan, { name: 'echo' });
  instance.handle = echo;
});
afterAll(async () => {
  await instance?.stop();
  await capstan?.stop();
});

async function historiesOf(runId: string): Promise<string> {
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  const { workflow } = new Client({ connection });
  const texts: string[] = [];
  for await (const { workflowId } of workflow.list({ query: `TaskQueue = "${capstan.taskQueue}"` })) {
    if (!workflowId.includes(runId)) continue;
    const history = await workflow.getHandle(workflowId).fetchHistory();
    texts.push(readAll(history));
  }
  await connection.close();
  return texts.join('');
}

/** Bytes as text, so that the content of payloads is found. */
function readAll(value: unknown): string {
  if (value instanceof Uint8Array) return `${Buffer.from(value).toString('latin1')}\n`;
  if (typeof value === 'string') return `${value}\n`;
  if (typeof value !== 'object' || value === null) return '';
  return Object.values(value).map(readAll).join('');
}

function openReview(runId: string): Promise<Review> {
  return waitFor('the question', async () => {
    const path = `/v1/reviews?run_id=${runId}&state=open`;
    return (await capstan.request<{ items: Review[] }>('GET', path)).body.items[0];
  });
}

async function restart(keys: string): Promise<void> {
  await Promise.all([capstan.killWorker('SIGTERM'), capstan.killServer('SIGTERM')]);
  await writeFile(file, keys);
  await Promise.all([capstan.startServer(), capstan.startWorker()]);
}

/** At a time that does not come during a test. */
async function addSchedule(): Promise<Schedule> {
  const steps = [{ id: 'a', capability: 'echo', input: { v: word } }];
  await capstan.request('POST', '/v1/pipelines', { pipeline: 'nightly', version: '1', steps });
  const asked = { name: 'nightly', pipeline: 'nightly', cron: '0 0 29 2 *', job: {} };
  return (await capstan.request<Schedule>('POST', '/v1/schedules', asked)).body;
}

/** Until it is read by this key. */
async function waitForKey({ schedule_id }: Schedule, key: string | undefined): Promise<void> {
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  const client = new Client({ connection, dataConverter: createDataConverter(key) });
  const handle = client.schedule.getHandle(`nightly/${schedule_id}`);
  const isRead = () => handle.describe().catch(() => undefined);
  await waitFor('the schedule to stand under the key', isRead);
  await connection.close();
}

/** Until the server has encrypted it by this key. */
async function waitForSecretUnder(keyId: string): Promise<void> {
  const db = connectDatabase(capstan.databaseUrl, 1);
  await waitFor('the secret under the new key', async () => {
    const rows = await db('secret').select('key_id');
    return rows.length > 0 && rows.every(({ key_id }) => key_id === keyId);
  }).finally(() => db.destroy());
}

let schedule: Schedule;
const secret = { value: word, capabilities: ['echo'] };

test('histories hold no value in plain text, and a run continues over a rotation', async () => {
  const run: Run = await capstan.submit(
    [
      { id: 'first', capability: 'echo', input: { v: word } },
      { id: 'ask', depends_on: ['first'], review: { title: 'May it go on?' } },
      { id: 'last', capability: 'echo', depends_on: ['ask'], input: { v: '{{ steps.first.output.v }}' } },
    ],
    { said: word },
  );
  const review = await openReview(run.run_id);
  expect((await capstan.request('PUT', '/v1/secrets/word', secret)).status).toBe(200);
  schedule = await addSchedule(); // for the next test: a rotation costs two starts
  await waitForKey(schedule, older);
  await restart(`${newer},${older}`);
  await decide(capstan, review, { action: 'output', output: { take: 1 } });
  const ended = await capstan.ended(run.run_id, 60_000);
  expect(ended).toMatchObject({ state: 'succeeded', output: { last: { v: word } } });
  const history = await historiesOf(run.run_id);
  expect(history).toContain('binary/encrypted');
  expect(history).toContain('k0');
  expect(history).toContain('k1');
  expect(history).not.toContain(word);
});

test.runIf(isLong)('a schedule starts its runs when the key is gone under which it was made', async () => {
  await waitForKey(schedule, newer);
  await waitForSecretUnder('k1');
  await restart(`${newer}`);
  expect((await capstan.request('POST', `/v1/schedules/${schedule.schedule_id}/trigger`)).status).toBe(202);
  const run = await waitFor('the run', async () => {
    const { body } = await capstan.request<{ items: RunSummary[] }>('GET', '/v1/runs?pipeline=nightly');
    return body.items[0];
  });
  expect(await capstan.ended(run.run_id, 60_000)).toMatchObject({ state: 'succeeded' });
});

test.runIf(isLong)('a secret is encrypted by the new key, and sent when the former one is gone', async () => {
  const { run_id } = await capstan.submit([
    { id: 'a', capability: 'echo', input: { v: '{{ secrets.word }}' } },
  ]);
  expect(await capstan.ended(run_id, 60_000)).toMatchObject({
    state: 'succeeded',
    output: { a: { v: '[secret word]' } },
  });
  expect(instance.execs.at(-1)?.input).toEqual({ v: word });
});

test.runIf(isLong)(
  'without the key that a run needs the run and its worker name it, and it continues with it',
  async () => {
    const run = await capstan.submit([{ id: 'ask', review: { title: 'May it go on?' } }]);
    const review = await openReview(run.run_id);
    const other = `k9:${randomBytes(32).toString('base64')}`;
    await restart(other);
    const stalled = await waitFor('the reason', async () => {
      const { body } = await capstan.request<Run>('GET', `/v1/runs/${run.run_id}`);
      return body.stalled;
    });
    expect(stalled).toMatchObject({ missing_key: 'k1', message: expect.stringContaining('there are k9') });
    await decide(capstan, review, { action: 'output', output: { take: 1 } });
    await waitFor('the worker to say it', () => capstan.logs().includes('encrypted by the key'));
    await restart(`${newer},${other}`);
    expect(await capstan.ended(run.run_id, 60_000)).toMatchObject({ state: 'succeeded' });
  },
);
