import type { Problem } from '@capstan/core/contracts/problem';
import type { Run, RunSummary } from '@capstan/core/contracts/run';
import type { Schedule, ScheduleList } from '@capstan/core/contracts/schedule';
import { noTelemetry } from '@capstan/core/telemetry/telemetry';
import type { ScheduleHandle } from '@temporalio/client';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { openTemporal } from '../../src/clients/temporal/connection.ts';
import { readSchedule } from '../../src/db/schedule.ts';
import { recordFruitlessStart } from '../../src/use-cases/schedules/scheduled-runs.ts';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import { anInstance } from '../support/factories.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
  await anInstance(api.db, { name: 'concat' });
  const steps = [{ id: 'a', capability: 'concat', input: {} }];
  const job_schema = { type: 'object', properties: { n: { type: 'integer' } } };
  for (const version of ['1.0', '1.1']) {
    await api.call('/v1/pipelines', { body: { pipeline: 'trailer', version, steps, job_schema } });
  }
  await api.call('/v1/pipelines/trailer/aliases/stable', { method: 'PUT', body: { version: '1.0' } });
});
afterAll(() => api?.close());

function aBody(body: object = {}) {
  return { name: 'nightly', pipeline: 'trailer', cron: '30 4 * * *', ...body };
}

function get(id: string) {
  return readJson<Schedule>(api.call(`/v1/schedules/${id}`));
}
/** An answer waits two seconds for Temporal; on a slow machine it reports the state a little later, by the same server. */
function delivered(id: string): Promise<Schedule> {
  return waitFor(`Temporal to be told of ${id}`, async () => {
    const [, schedule] = await get(id);
    const isShown = schedule.paused || schedule.next_at.length > 0; // as in `seen`
    return schedule.delivered && isShown ? schedule : undefined;
  });
}

/** A view asks Temporal for two seconds, not longer. */
function seen(id: string, isSo: (schedule: Schedule) => boolean): Promise<Schedule> {
  return waitFor(`Temporal to be asked about ${id}`, async () => {
    const [, schedule] = await get(id);
    return isSo(schedule) ? schedule : undefined;
  });
}

let names = 0;
async function create(body: object = {}): Promise<Schedule> {
  const [status, schedule] = await readJson<Schedule>(
    api.call('/v1/schedules', { body: aBody({ name: `s${names++}`, ...body }) }),
  );
  expect(status).toBe(201);
  return delivered(schedule.schedule_id);
}
function ask(id: string, act: string) {
  return readJson<Schedule>(api.call(`/v1/schedules/${id}/${act}`, { method: 'POST' }));
}

async function inTemporal(id: string) {
  process.env.TEMPORAL_ADDRESS = inject('temporalAddress');
  const client = openTemporal();
  try {
    return await client.schedule.getHandle(`trailer/${id}`).describe();
  } catch {
    return null;
  } finally {
    await client.connection.close();
  }
}

it('answers a schedule with its defaults and its next five starts, in summer and winter at the same hour', async () => {
  const body = aBody({ alias: 'stable', cron: '0 9 1 */3 *', timezone: 'Europe/Berlin', job: { n: 1 } });
  const answer = await api.call('/v1/schedules', { body });
  const answered = (await answer.json()) as Schedule;
  const { schedule_id } = answered;
  expect(answered).toMatchObject({ ...body, overlap: 'skip', catch_up: '1m', paused: false });
  const schedule = await delivered(schedule_id);
  expect([answer.status, answer.headers.get('location')]).toEqual([201, `/v1/schedules/${schedule_id}`]);
  expect(schedule).toEqual({
    ...body,
    overlap: 'skip',
    catch_up: '1m',
    paused: false,
    delivered: true,
    schedule_id: expect.stringMatching(/^sch_/),
    next_at: expect.any(Array),
    last_start: null,
    skipped: null,
    created_at: expect.any(String),
    updated_at: expect.any(String),
  });
  expect(schedule.next_at).toHaveLength(5);
  expect(new Set(schedule.next_at.map((at) => at.slice(11)))).toEqual(
    new Set(['07:00:00.000Z', '08:00:00.000Z']),
  );
});

it('replaces a schedule, in Temporal too', async () => {
  const { schedule_id } = await create();
  const body = aBody({ name: 'hourly', cron: '@hourly', overlap: 'allow_all', version: '1.1' });
  const answer = await readJson<Schedule>(api.call(`/v1/schedules/${schedule_id}`, { method: 'PUT', body }));
  expect(answer).toMatchObject([200, body]);
  const schedule = await delivered(schedule_id);
  expect(schedule.next_at.every((at) => at.slice(14) === '00:00.000Z')).toBe(true);
  expect(await inTemporal(schedule_id)).toMatchObject({ policies: { overlap: 'ALLOW_ALL' } });
});

it('pauses and resumes', async () => {
  const { schedule_id } = await create();
  expect(await ask(schedule_id, 'pause')).toMatchObject([200, { paused: true, next_at: [] }]);
  expect(await ask(schedule_id, 'pause')).toMatchObject([200, { paused: true }]);
  await delivered(schedule_id);
  expect(await inTemporal(schedule_id)).toMatchObject({ state: { paused: true } });
  expect((await ask(schedule_id, 'trigger'))[0]).toBe(409);
  expect(await ask(schedule_id, 'resume')).toMatchObject([200, { paused: false }]);
  expect((await delivered(schedule_id)).next_at).toHaveLength(5);
});

it('shows that it was paused in Temporal, and resumes it', async () => {
  const { schedule_id } = await create();
  const inOwnClient = async (act: (schedule: ScheduleHandle) => Promise<void>) => {
    const client = openTemporal();
    await act(client.schedule.getHandle(`trailer/${schedule_id}`));
    await client.connection.close();
  };
  await inOwnClient((schedule) => schedule.pause('the disk is full'));
  const paused = { paused: false, paused_in_temporal: 'the disk is full', next_at: [] };
  expect(await seen(schedule_id, (one) => 'paused_in_temporal' in one)).toMatchObject(paused);
  expect((await ask(schedule_id, 'trigger'))[0]).toBe(409);
  expect((await ask(schedule_id, 'resume'))[0]).toBe(200);
  const resumed = await delivered(schedule_id);
  expect(resumed).not.toHaveProperty('paused_in_temporal');
  expect(resumed.next_at).toHaveLength(5);
  expect(await inTemporal(schedule_id)).toMatchObject({ state: { paused: false } });
});

it('lists by name, page by page', async () => {
  for (const name of ['zz2', 'zz1', 'zz3']) await create({ name });
  const [, all] = await readJson<ScheduleList>(api.call('/v1/schedules?limit=200'));
  const listed = all.items.map(({ name }) => name);
  expect(listed.slice(-3)).toEqual(['zz1', 'zz2', 'zz3']);
  expect(listed).toEqual([...listed].sort());
  const seen: string[] = [];
  let cursor: string | null = '';
  while (cursor !== null) {
    const query: string = cursor === '' ? '' : `&cursor=${cursor}`;
    const [, page] = await readJson<ScheduleList>(api.call(`/v1/schedules?limit=2${query}`));
    seen.push(...page.items.map(({ name }) => name));
    cursor = page.next_cursor;
  }
  expect(seen).toEqual(listed);
});

it('deletes, here and in Temporal, and frees the name', async () => {
  const { schedule_id } = await create({ name: 'gone' });
  const path = `/v1/schedules/${schedule_id}`;
  expect((await api.call(path, { method: 'DELETE' })).status).toBe(204);
  await waitFor('Temporal to have none', async () => (await inTemporal(schedule_id)) === null);
  expect((await get(schedule_id))[0]).toBe(404);
  expect((await api.call(path, { method: 'DELETE' })).status).toBe(404);
  await create({ name: 'gone' });
});

it.each([
  [{ cron: '61 * * * *' }, '/cron', 'cron_invalid', undefined],
  [{ timezone: 'Europe/Berlni' }, '/timezone', 'timezone_unknown', 'did you mean "Europe/Berlin"?'],
  [{ catch_up: '5s' }, '/catch_up', 'catch_up_invalid', undefined],
  [{ pipeline: 'trialer' }, '/pipeline', 'pipeline_unknown', 'did you mean "trailer"?'],
  [{ version: '1.2' }, '/version', 'version_unknown', 'did you mean "1.1"?'],
  [{ alias: 'stabel' }, '/alias', 'alias_unknown', 'did you mean "stable"?'],
])('refuses %j', async (body, pointer, code, suggestion) => {
  const [status, problem] = await readJson(
    api.call('/v1/schedules', { body: aBody({ name: 'bad', ...body }) }),
  );
  expect([status, problem.code, problem.errors]).toEqual([
    422,
    'request_invalid',
    [{ pointer, code, message: expect.any(String), ...(suggestion && { suggestion }) }],
  ]);
});

it('names everything that is wrong at once, and checks a changed schedule like a new one', async () => {
  const body = aBody({ name: 'bad', cron: 'x', timezone: 'Nowhere', pipeline: 'none' });
  const { schedule_id } = await create();
  const asked: [string, string][] = [
    ['POST', '/v1/schedules'],
    ['PUT', `/v1/schedules/${schedule_id}`],
  ];
  for (const [method, path] of asked) {
    const [status, problem] = await readJson<Problem>(api.call(path, { method, body }));
    expect([status, problem.errors?.map(({ pointer }) => pointer)]).toEqual([
      422,
      ['/cron', '/timezone', '/pipeline'],
    ]);
  }
});

it('refuses a job that its pipeline would refuse', async () => {
  const [status, problem] = await readJson(api.call('/v1/schedules', { body: aBody({ job: { n: 'one' } }) }));
  expect([status, problem.code, problem.errors]).toMatchObject([422, 'job_invalid', [{ pointer: '/job/n' }]]);
});

it('refuses expressions in its job, which is no template, and takes templates of others', async () => {
  const job = {
    n: 1,
    id: 'night {{run.scheduled_at | format_date("YYYY")}}',
    list: [{ a: '{{ name }} {{ item }}' }, '{{ job["x"]'],
    prompt: '{{ name }}, {{ runner.id }}, {{ items }} and {{ steps-left }}, {{% run.id %}}',
  };
  const schedule = await create();
  for (const [method, path] of [
    ['POST', '/v1/schedules'],
    ['PUT', `/v1/schedules/${schedule.schedule_id}`],
  ] as const) {
    const body = aBody({ name: 'bad', job });
    const [status, problem] = await readJson<Problem>(api.call(path, { method, body }));
    const told = problem.errors?.map(({ pointer, code, message }) => [pointer, code, message]);
    const because = (text: string) =>
      `the job of a schedule takes no expression, and this text holds ${text}`;
    expect([status, told]).toEqual([
      422,
      [
        ['/job/id', 'expression_unused', because('{{run.scheduled_at | format_date("YYYY")}}')],
        ['/job/list/0/a', 'expression_unused', because('{{ item }}')],
        ['/job/list/1', 'expression_unused', because('{{ job["x"]')],
      ],
    ]);
    expect(problem.errors?.[0]?.suggestion).toMatch(/in the pipeline, where .* run\.scheduled_date/);
  }
  const { prompt } = job;
  expect(await create({ name: 'prompts', job: { n: 1, prompt } })).toMatchObject({ job: { prompt } });
});

function trigger(id: string, key?: string, body?: object) {
  const headers: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key };
  return api.call(`/v1/schedules/${id}/trigger`, { method: 'POST', headers, ...(body && { body }) });
}

async function runsOf(id: string) {
  const [, runs] = await readJson<{ items: RunSummary[] }>(api.call(`/v1/runs?schedule_id=${id}`));
  return runs.items;
}

it('starts one run for a key, also at the same moment, and refuses the key with another body', async () => {
  const { schedule_id } = await create({ overlap: 'allow_all' });
  const answers = await Promise.all([1, 2, 3].map(() => trigger(schedule_id, 'one')));
  const bodies = await Promise.all(answers.map((answer) => answer.json() as Promise<Schedule>));
  expect(answers.map(({ status }) => status)).toEqual([202, 202, 202]);
  expect(new Set(bodies.map(({ last_start }) => last_start?.run_id)).size).toBe(1);
  const runs = await runsOf(schedule_id);
  const planned = runs.map(({ scheduled_at = '' }) => Date.parse(scheduled_at));
  expect(planned).toEqual([Date.parse(bodies[0]?.last_start?.scheduled_at ?? '')]);
  const again = await trigger(schedule_id, 'one');
  expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([202, 'true']);
  expect((await trigger(schedule_id, 'one', {})).status).toBe(422);
  for (const key of ['two', 'three', undefined]) expect((await trigger(schedule_id, key)).status).toBe(202);
  expect(await runsOf(schedule_id)).toHaveLength(4);
});

it('answers a trigger with the problem, right after the creation too, and makes no run of it', async () => {
  const body = aBody({ name: 'refused', version: '1.0', job: { n: 1 } });
  const [, { schedule_id }] = await readJson<Schedule>(api.call('/v1/schedules', { body }));
  expect((await trigger(schedule_id)).status).toBe(202);
  const [status, problem] = await readJson(trigger(schedule_id));
  expect([status, problem.code, problem.detail]).toEqual([
    409,
    'state_conflict',
    expect.stringMatching(/^run run_\S+ of this schedule is still open, and overlap is skip$/),
  ]);
  for (const overlap of ['allow_all', 'buffer_one']) {
    const other = await create({ overlap });
    await api
      .db('schedule')
      .where({ schedule_id: other.schedule_id })
      .update({ body: aBody({ ...other, alias: 'gone' }) });
    expect(await readJson(trigger(other.schedule_id, 'k'))).toMatchObject([404, { code: 'not_found' }]);
    expect(await runsOf(other.schedule_id)).toEqual([]);
  }
});

it('shows its last start, and runs one that was refused again when the cause is mended', async () => {
  const { schedule_id } = await create({ job: { n: 1 } });
  const start = { schedule_id, scheduled_at: '2026-03-01T04:30:00.000Z', workflow_id: 'w' };
  const row = await readSchedule(api.db, schedule_id);
  if (row === undefined) throw new Error('the schedule is gone');
  const error = { code: 'job_invalid', message: 'the job does not match' };
  await recordFruitlessStart({ db: api.db, telemetry: noTelemetry }, row, {
    ...start,
    outcome: 'refused',
    error,
  });
  const [, shown] = await get(schedule_id);
  const { scheduled_at } = start;
  expect(shown.last_start).toEqual({ scheduled_at, run_id: expect.any(String), state: 'failed', error });
  const run_id = shown.last_start?.run_id ?? '';
  const [, run] = await readJson<Run>(api.call(`/v1/runs/${run_id}`));
  expect(run).toMatchObject({ state: 'failed', schedule_id, error, version: '1.1' });
  const body = aBody({ name: 'mended', version: '1.0', job: { n: 2 } });
  await api.call(`/v1/schedules/${schedule_id}`, { method: 'PUT', body });
  const [status, rerun] = await readJson<Run>(api.call(`/v1/runs/${run_id}/rerun`, { method: 'POST' }));
  expect([status, rerun.version, rerun.rerun_of]).toEqual([202, '1.0', run_id]);
  expect(await readJson(api.call(`/v1/jobs/${rerun.job_id}`))).toMatchObject([200, { job: { n: 2 } }]);
});

it('gives a name to one schedule only', async () => {
  await create({ name: 'mine' });
  const { schedule_id } = await create({ name: 'other' });
  const body = aBody({ name: 'mine' });
  expect((await api.call('/v1/schedules', { body })).status).toBe(409);
  expect((await api.call(`/v1/schedules/${schedule_id}`, { method: 'PUT', body })).status).toBe(409);
});

it('is created again in Temporal after Temporal has forgotten it', async () => {
  const { schedule_id } = await create();
  const client = openTemporal();
  await client.schedule.getHandle(`trailer/${schedule_id}`).delete();
  await client.connection.close();
  await seen(schedule_id, ({ delivered }) => !delivered);
  expect((await ask(schedule_id, 'trigger'))[0]).toBe(202);
  await delivered(schedule_id);
});

it('shows a schedule to its own project only', async () => {
  const { schedule_id } = await create();
  const { apiKey } = await api.createProject('others');
  const headers = { authorization: `Bearer ${apiKey}` };
  for (const [method, path] of [
    ['GET', ''],
    ['PUT', ''],
    ['DELETE', ''],
    ['POST', '/pause'],
    ['POST', '/trigger'],
  ] as const) {
    const body = method === 'PUT' ? { body: aBody() } : {};
    const answer = await api.call(`/v1/schedules/${schedule_id}${path}`, { method, headers, ...body });
    expect(answer.status).toBe(404);
  }
  expect((await get(schedule_id))[0]).toBe(200);
});

it('takes changes from keys that may start runs, and shows them to keys that may see runs', async () => {
  const key = await api.createKey({ scopes: ['run:read'] });
  const headers = { authorization: `Bearer ${key}` };
  expect((await api.call('/v1/schedules', { headers })).status).toBe(200);
  expect((await api.call('/v1/schedules', { headers, body: aBody() })).status).toBe(403);
});
