/** What names a file of another project is refused when it is submitted, as if the file were missing. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { purge } from '../../src/use-cases/retention/purge.ts';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import { execOn, registerInstance } from '../support/direct-calls.ts';
import type { Instance } from '../support/fleet.ts';

let api: TestApi;
let reader: Instance;
let foreign: string;
let own: string;

beforeAll(async () => {
  api = await startTestApi();
  reader = await registerInstance(api, { name: 'reader' });
  const { apiKey } = await api.createProject('other');
  const created = await api.call('/v1/jobs', {
    body: { job: {} },
    headers: { authorization: `Bearer ${apiKey}` },
  });
  foreign = `media://${((await created.json()) as { job_id: string }).job_id}/secret.txt`;
  const [, { job_id }] = await readJson<{ job_id: string }>(api.call('/v1/jobs', { body: { job: {} } }));
  own = `media://${job_id}/a.txt`;
  await api.call('/v1/pipelines', { body: aDefinition({ path: '{{ job.path }}' }) });
});
afterAll(async () => {
  await reader.stop();
  await api.close();
});

function aDefinition(input: object) {
  return { pipeline: 'reads', version: '1', steps: [{ id: 'a', capability: 'reader', input }] };
}

async function submit(path: string, body: object): Promise<[number, string | undefined, string | undefined]> {
  const [status, { code, errors }] = await readJson(api.call(path, { body }));
  return [status, code, errors?.[0]?.pointer];
}

test.each([
  ['/v1/jobs', (path: string) => ({ job: { path } }), '/job/path', 201],
  ['/v1/runs', (path: string) => ({ pipeline: 'reads', job: { path } }), '/job/path', 202],
  [
    '/v1/runs',
    (path: string) => ({ definition: aDefinition({ x: [path] }) }),
    '/definition/steps/0/input/x/0',
    202,
  ],
  [
    '/v1/plan',
    (path: string) => ({ definition: aDefinition({ path: '' }), job: { path } }),
    '/job/path',
    200,
  ],
  [
    '/v1/plan',
    (path: string) => ({ definition: aDefinition({ path }) }),
    '/definition/steps/0/input/path',
    200,
  ],
  ['/v1/pipelines/reads/plan', (path: string) => ({ job: { path } }), '/job/path', 200],
])('%s refuses a foreign file', async (path, bodyOf, pointer, taken) => {
  expect(await submit(path, bodyOf(foreign))).toEqual([422, 'media_unknown', pointer]);
  expect(await submit(path, bodyOf('media://job_none/a'))).toEqual([422, 'media_unknown', pointer]);
  expect((await submit(path, bodyOf(own)))[0]).toBe(taken);
});

test.each([
  ['a list in a text', (path: string) => ({ text: `a=${path}, b` }), '/job/text'],
  ['a key', (path: string) => ({ by: { [path]: 1 } }), null],
])('a foreign file in %s is refused', async (_, jobOf, pointer) => {
  const body = (path: string) => ({ pipeline: 'reads', job: { path: own, ...jobOf(path) } });
  const [status, code, at] = await submit('/v1/runs', body(foreign));
  expect([status, code]).toEqual([422, 'media_unknown']);
  if (pointer !== null) expect(at).toBe(pointer);
  expect((await submit('/v1/runs', body(own)))[0]).toBe(202);
  expect((await submit('/v1/runs', body('media://job/a')))[0]).toBe(202);
});

test('a foreign file is refused in one of many runs', async () => {
  const runs = [own, foreign].map((path) => ({ pipeline: 'reads', job: { path } }));
  const [, { items }] = await readJson<{ items: { status: number }[] }>(
    api.call('/v1/runs/bulk', { body: { runs } }),
  );
  expect(items.map(({ status }) => status)).toEqual([202, 422]);
});

test('a foreign file is refused in a schedule, whose job may name its own', async () => {
  const schedule = (name: string, path: string) => ({
    name,
    pipeline: 'reads',
    cron: '0 3 * * *',
    timezone: 'UTC',
    job: { path },
  });
  expect(await submit('/v1/schedules', schedule('one', foreign))).toEqual([
    422,
    'media_unknown',
    '/job/path',
  ]);
  expect((await submit('/v1/schedules', schedule('two', 'media://job/a')))[0]).toBe(201);
});

test('a foreign file is refused in a direct call before it is sent', async () => {
  const before = reader.execs.length;
  const { status, body } = await execOn(api, 'reader', { body: { input: { path: foreign } } });
  expect([status, body.code, body.errors?.[0]?.pointer]).toEqual([422, 'media_unknown', '/input/path']);
  expect(reader.execs.length).toBe(before);
  expect((await execOn(api, 'reader', { body: { input: { path: own } } })).status).toBe(200);
});

function aSignal<Value>() {
  let resolve: (value: Value) => void = () => undefined;
  const promise = new Promise<Value>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** @returns an input that names a file of a job which is going, and what ends that */
async function aLeavingJob() {
  const newJob = (job: object) => readJson<{ job_id: string }>(api.call('/v1/jobs', { body: { job } }));
  const [, { job_id }] = await newJob({});
  const path = `media://${job_id}/a.txt`;
  const [, naming] = await newJob({ path });
  expect((await submit('/v1/runs', { pipeline: 'reads', job_id: naming.job_id }))[0]).toBe(202);
  await api.db('run').update({ state: 'succeeded', finished_at: new Date() });
  await api
    .db('job')
    .whereNot({ job_id })
    .update({ created_at: new Date('2999-01-01') });
  const going = aSignal<void>();
  const files = aSignal<number>();
  const deleteJob = (jobId: string): Promise<number> => {
    if (jobId === job_id) going.resolve();
    return jobId === job_id ? files.promise : Promise.resolve(0);
  };
  const retention = { runDays: 1, choiceDays: null, bookDays: null };
  const now = new Date(Date.now() + 2 * 86_400_000);
  const purging = purge({ db: api.db, media: { deleteJob } }, { retention, now });
  await going.promise;
  const end = (): Promise<unknown> => {
    files.resolve(1);
    return purging;
  };
  return { path, job_id, naming: naming.job_id, end };
}

test('a file of a job that is being purged is refused to its own project', async () => {
  const { path, job_id, naming, end } = await aLeavingJob();
  expect(await submit('/v1/runs', { pipeline: 'reads', job: { path } })).toEqual([
    422,
    'media_unknown',
    '/job/path',
  ]);
  const definition = aDefinition({ path });
  expect(await submit('/v1/runs', { definition })).toEqual([
    422,
    'media_unknown',
    '/definition/steps/0/input/path',
  ]);
  expect((await submit('/v1/runs', { pipeline: 'reads', job_id }))[0]).toBe(404);
  expect(await submit('/v1/runs', { pipeline: 'reads', job_id: naming })).toEqual([
    422,
    'media_unknown',
    '/job/path',
  ]);
  await end();
});

test('a foreign file is refused in a rerun with another job', async () => {
  const [, { run_id }] = await readJson<{ run_id: string }>(
    api.call('/v1/runs', { body: { pipeline: 'reads', job: { path: own } } }),
  );
  await api.db('run').where({ run_id }).update({ state: 'failed', finished_at: new Date() });
  const rerun = (job: object) => submit(`/v1/runs/${run_id}/rerun`, { job });
  expect(await rerun({ path: foreign })).toEqual([422, 'media_unknown', '/job/path']);
});
