/**
 * The data folder of a stack, with finished runs, open reviews and waits, is moved into another Postgres and an empty
 * namespace of Temporal, by a role without special rights. Each run continues there, and no step is called twice.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { chmod, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Review } from '@capstan/core/contracts/review';
import { Connection } from '@temporalio/client';
import pg from 'pg';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { connectDatabase } from '../../src/db/connect.ts';
import { findDrift } from '../../src/db/money/budget-drift.ts';
import { createTemporaryFolder, lockDataFolder } from '../../src/dev/data-folder.ts';
import { choosePort } from '../../src/dev/ports.ts';
import { ensureDatabase, startPostgres } from '../../src/dev/postgres/server.ts';
import { createPartReport } from '../../src/dev/progress.ts';
import { createSupervisor, type Supervisor } from '../../src/dev/supervisor/supervisor.ts';
import { prepareDatabase } from '../../src/use-cases/setup.ts';
import { type Capstan, type CapstanClient, createClient, startCapstan } from '../support/capstan.ts';
import { findCompiled } from '../support/compiled.ts';
import { type Instance, startInstance } from '../support/fleet.ts';
import { isLong } from '../support/long.ts';
import { decide } from '../support/reviews.ts';
import { waitFor } from '../support/wait.ts';

const runsOfEach = isLong ? 100 : 3;
let folder: string;
let dataDir: string;
let supervisor: Supervisor | undefined;
let capstan: Capstan | undefined;
let client: CapstanClient;
let instance: Instance | undefined;
const role = `plain_${randomBytes(4).toString('hex')}`;
const queue = { TASK_QUEUE: role, HEARTBEAT_TIMEOUT_MS: '2000', LEASE_MS: '3000' };

async function startLaptop(): Promise<string> {
  supervisor = createSupervisor({ report: () => undefined, temporaryFolder: null });
  const options = { dataDir, port: await choosePort([]), ephemeral: true, cacheDir: join(folder, 'cache') };
  const report = createPartReport(() => undefined, 'Postgres');
  return ensureDatabase(await startPostgres(supervisor, options, report), 'capstan');
}

/** Its owner may do nothing outside of it. */
async function createTarget(): Promise<string> {
  const admin = new pg.Client({ connectionString: inject('databaseUrl') });
  await admin.connect();
  await admin.query(`create role ${role} login password 'plain'`);
  await admin.query(`create database ${role} owner ${role} template template0`);
  await admin.end();
  const url = new URL(inject('databaseUrl'));
  [url.username, url.password, url.pathname] = [role, 'plain', `/${role}`];
  return url.href;
}

async function dropTarget(): Promise<void> {
  const admin = new pg.Client({ connectionString: inject('databaseUrl') });
  await admin.connect();
  await admin.query(`drop database if exists ${role} with (force)`);
  await admin.query(`drop role if exists ${role}`);
  await admin.end();
}

async function aNamespace(): Promise<string> {
  const namespace = `moved-${role}`;
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  const { workflowService } = connection;
  const period = { seconds: 86_400 as never };
  await workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod: period });
  const isKnown = () =>
    workflowService.listWorkflowExecutions({ namespace }).then(
      () => true,
      () => undefined,
    );
  await waitFor('the namespace', isKnown).finally(() => connection.close());
  return namespace;
}

beforeAll(() => {
  folder = createTemporaryFolder('capstan-moved-');
  dataDir = join(folder, 'data');
  mkdirSync(join(dataDir, 'media'), { recursive: true, mode: 0o755 });
  return chmod(folder, 0o755);
});
afterAll(async () => {
  await instance?.stop();
  await capstan?.stop();
  await supervisor?.stop();
  await dropTarget();
  await rm(folder, { recursive: true, force: true });
});

function echoed(id: string, ...depends_on: string[]) {
  return { id, capability: 'echo', input: { id }, depends_on };
}

const kinds = {
  ended: [echoed('a')],
  person: [echoed('a'), { id: 'ask', review: { title: '?' }, depends_on: ['a'] }, echoed('b', 'ask')],
  time: [echoed('a'), { id: 'pause', wait: '1h', depends_on: ['a'] }, echoed('b', 'pause')],
};

async function submitAll(): Promise<Record<keyof typeof kinds, string[]>> {
  const submit = async (steps: readonly object[]): Promise<string[]> => {
    const runs = await Promise.all(Array.from({ length: runsOfEach }, () => client.submit(steps)));
    return runs.map(({ run_id }) => run_id);
  };
  return {
    ended: await submit(kinds.ended),
    person: await submit(kinds.person),
    time: await submit(kinds.time),
  };
}

async function openReviews(): Promise<Review[]> {
  const { body } = await client.request<{ items: Review[] }>('GET', '/v1/reviews?state=open&limit=200');
  return body.items;
}

/** Runs until all that can happen without a person and without time has happened, then stops in order. */
async function makeLaptop(): Promise<Record<keyof typeof kinds, string[]>> {
  const databaseUrl = await startLaptop();
  const access = await prepareDatabase(databaseUrl, { apiKeyFile: join(dataDir, 'api-key') });
  client = createClient(() => capstan?.url ?? '', access.api_key);
  const media = { MEDIA_URL: `file://${join(dataDir, 'media')}` };
  capstan = await startCapstan({ ...queue, ...media, DATABASE_URL: databaseUrl });
  instance = await startInstance(client, { name: 'echo', max_concurrency: 20 });
  const { body } = await client.request<{ job_id: string }>('POST', '/v1/jobs', { job: {} });
  const sent = await client.request('PUT', `/v1/media/${body.job_id}/notes/a.txt`, 'file content', {
    'content-type': 'text/plain',
  });
  expect(sent.status).toBeLessThan(300);
  const runs = await submitAll();
  for (const id of runs.ended) await client.ended(id);
  await waitFor('the reviews', async () => (await openReviews()).length === runsOfEach);
  const db = connectDatabase(databaseUrl, 1);
  const waiting = () => db('step').where({ awaiting: 'time' }).count<{ count: string }[]>();
  await waitFor('the waits', async () => Number((await waiting())[0]?.count) === runsOfEach);
  await db.destroy();
  await capstan.killServer('SIGTERM');
  await capstan.killWorker('SIGTERM');
  await capstan.stop();
  await supervisor?.stop();
  return { ...runs, ended: [...runs.ended, body.job_id] };
}

/** Their time is over before a run continues at the new place, however long the move took. */
async function endWaits(databaseUrl: string): Promise<void> {
  const db = connectDatabase(databaseUrl, 1);
  const ended = await db('step').where({ awaiting: 'time' }).update({ wait_until: db.fn.now() });
  await db.destroy();
  expect(ended).toBe(runsOfEach);
}

async function move(envFile: string) {
  const program = findCompiled(inject('packageFolder'), 'src/cli/main.ts');
  const { PATH, HOME, TMPDIR } = process.env;
  const words = [program, 'move', '--data', dataDir, '--env-file', envFile];
  const run = promisify(execFile)(process.execPath, words, { env: { PATH, HOME, TMPDIR } });
  const failed = (error: { code: number; stdout: string; stderr: string }) => error;
  const { code = 0, stdout, stderr } = await run.then((said) => ({ ...said, code: 0 }), failed);
  return { code, stdout, stderr };
}

test('every run of a moved data folder continues at the new place, once', async () => {
  const { ended, person, time } = await makeLaptop();
  const job = ended.pop();
  const databaseUrl = await createTarget();
  const settings = {
    ...queue,
    DATABASE_URL: databaseUrl,
    TEMPORAL_ADDRESS: inject('temporalAddress'),
    TEMPORAL_NAMESPACE: await aNamespace(),
    MEDIA_URL: `file://${join(folder, 'media')}`,
  };
  const envFile = join(folder, 'target.env');
  const lines = Object.entries(settings).map(([name, value]) => `${name}="${value}"`);
  await writeFile(envFile, lines.join('\n'));

  const lock = lockDataFolder(dataDir);
  expect(await move(envFile)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('is in use by process'),
  });
  lock.release();
  const { code, stdout, stderr } = await move(envFile);
  if (isLong) console.error(stdout);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain('files copied: 1, 12 B');
  expect(stdout).not.toContain('backup'); // those are the words of a restore
  expect(stdout).toMatch(new RegExp(`run +${3 * runsOfEach} rows`));
  expect(stdout).toContain(`started again: ${2 * runsOfEach} runs, 0 ladders, 0 schedules`);
  expect(await move(envFile)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('go on with capstan recover'),
  });

  await endWaits(databaseUrl);
  capstan = await startCapstan(settings);
  await Promise.all(
    (await openReviews()).map((review) => decide(client, review, { action: 'output', output: {} })),
  );
  for (const id of [...ended, ...person, ...time])
    expect(await client.ended(id)).toMatchObject({ run_id: id, state: 'succeeded' });
  const calls = instance?.execs.map(({ headers }) => String(headers['idempotency-key'])) ?? [];
  expect(calls).toHaveLength(5 * runsOfEach);
  expect(new Set(calls).size).toBe(calls.length);
  expect((await client.request('GET', `/v1/media/${job}/notes/a.txt`)).body).toBe('file content');
  expect((await readFile(join(dataDir, 'api-key'), 'utf8')).trim()).toMatch(/^cap/);
  const db = connectDatabase(databaseUrl, 1);
  expect(await findDrift(db).finally(() => db.destroy())).toEqual([]);
});
