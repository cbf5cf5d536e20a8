import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import { ScheduleRequest } from '@capstan/core/contracts/schedule';
import { noTelemetry } from '@capstan/core/telemetry/telemetry';
import type { ScheduledStart } from '@capstan/core/workflow-payloads';
import { beforeAll, expect, it } from 'vitest';
import { insertVersion, setAlias } from '../../../src/db/pipeline.ts';
import {
  deleteSchedule,
  insertSchedule,
  type ScheduleKey,
  updateSchedule,
} from '../../../src/db/schedule.ts';
import { createRunContexts } from '../../../src/parts/definitions/run-context.ts';
import { newId } from '../../../src/parts/ids.ts';
import { storeDefinition } from '../../../src/use-cases/pipelines/pipelines.ts';
import { submitScheduledRun } from '../../../src/use-cases/schedules/scheduled-runs.ts';
import { useDatabase } from '../../support/database.ts';
import { anInstance, aProject, aRun } from '../../support/factories.ts';
import { anIntakeCtx } from '../../support/intake.ts';

const { db } = useDatabase();

const ctx = anIntakeCtx(db, { mostOpen: 3 });
const submit = (start: ScheduledStart) => submitScheduledRun(ctx, start);
beforeAll(() => anInstance(db, { name: 'concat' }));

async function aVersion(project_id: string, definition: Partial<PipelineDefinition> = {}): Promise<void> {
  const whole = {
    pipeline: 'trailer',
    version: '1',
    steps: [{ id: 'a', capability: 'concat' }],
    ...definition,
  };
  const digest = await storeDefinition(db, whole);
  await insertVersion(db, { project_id, pipeline: whole.pipeline, version: whole.version }, { digest });
}

function aBody(body: object = {}): ScheduleRequest {
  return ScheduleRequest.parse({ name: 'nightly', pipeline: 'trailer', cron: '@daily', ...body });
}

async function aSchedule(body: object = {}, definition: Partial<PipelineDefinition> = {}) {
  const { project_id } = await aProject(db);
  await aVersion(project_id, definition);
  const key: ScheduleKey = { project_id, schedule_id: newId('schedule') };
  await insertSchedule(
    db,
    { ...key, workflow_id: `trailer/${key.schedule_id}`, created_by: 'key_1' },
    aBody(body),
  );
  return key;
}

function aStart({ schedule_id }: ScheduleKey, scheduled_at = '2026-03-01T04:30:00.000Z'): ScheduledStart {
  return {
    schedule_id,
    scheduled_at,
    workflow_id: `scheduled/x/${schedule_id}`,
  };
}

function runsOf({ schedule_id }: ScheduleKey) {
  return db('run').where({ schedule_id }).orderBy('scheduled_at').join('job', 'job.job_id', 'run.job_id');
}

it('starts one run for each time, however often it is asked, with the values of the schedule', async () => {
  const key = await aSchedule({
    overlap: 'allow_all',
    job: { n: 1 },
    priority: 'batch',
    budget_ceiling_usd: 2,
    labels: { a: 'b' },
  });
  const answers = await Promise.all([submit(aStart(key)), submit(aStart(key)), submit(aStart(key))]);
  const later = await submit(aStart(key, '2026-03-02T04:30:00.000Z'));
  const runs = await runsOf(key);
  expect(runs).toMatchObject([
    {
      pipeline: 'trailer',
      version: '1',
      priority: 'batch',
      labels: { a: 'b' },
      body: { n: 1 },
      scheduled_at: new Date('2026-03-01T04:30:00Z'),
      parent_workflow_id: aStart(key).workflow_id,
    },
    { scheduled_at: new Date('2026-03-02T04:30:00Z') },
  ]);
  expect([...answers, later].map((answer) => ('run_id' in answer ? answer.run_id : answer))).toEqual([
    ...Array(3).fill(runs[0].run_id),
    runs[1].run_id,
  ]);
});

it('gives its expressions the planned moment, also those of a rerun, and other runs none', async () => {
  const night = '{{ run.scheduled_at ?? "none" }}';
  const key = await aSchedule({}, { labels: { night, since: '{{ run.period_start ?? "none" }}' } });
  await submit(aStart(key));
  const [run] = await runsOf(key);
  const period_start = (await db('run').where({ run_id: run.run_id }).first('period_start')).period_start;
  const since = period_start.toISOString();
  expect(Date.parse(since)).toBeLessThan(Date.parse('2026-03-01T04:30:00.000Z'));
  expect(run.labels).toEqual({ night: '2026-03-01T04:30:00.000Z', since });
  const contexts = createRunContexts(db);
  const runOf = async (id: string) => (await contexts.open(id)).scope.run;
  const momentOf = async (id: string) => (await runOf(id)).scheduled_at;
  expect(await runOf(run.run_id)).toMatchObject({
    scheduled_at: '2026-03-01T04:30:00.000Z',
    period_start: since,
    period_end: '2026-03-01T04:30:00.000Z',
  });
  const { run_id, project_id, job_id } = run;
  const again = await aRun(db, { project_id, rerun_of: run_id });
  await db('run').where({ run_id: again.run_id }).update({ job_id });
  expect(await runOf(again.run_id)).toMatchObject({
    period_start: since,
    period_end: '2026-03-01T04:30:00.000Z',
  });
  const byHand = await aRun(db, { project_id });
  expect(await momentOf(byHand.run_id)).toBeUndefined();
});

it('gives its expressions the date in the zone of the schedule, which it keeps when the schedule moves', async () => {
  const night = { cron: '30 0 * * *', timezone: 'Europe/Berlin', overlap: 'allow_all' };
  const key = await aSchedule(night, { labels: { day: '{{ run.scheduled_date ?? "none" }}' } });
  await submit(aStart(key, '2026-11-26T23:30:00.000Z'));
  await updateSchedule(db, key.schedule_id, aBody({ ...night, timezone: 'America/New_York' }));
  await submit(aStart(key, '2026-11-28T05:30:00.000Z'));
  const [first, second] = await runsOf(key);
  const { run_id } = await aRun(db, { project_id: key.project_id, rerun_of: first.run_id });
  await db('run').where({ run_id }).update({ job_id: first.job_id });
  const contexts = createRunContexts(db);
  const dateOf = async (id: string) => (await contexts.open(id)).scope.run.scheduled_date;
  expect([first.labels, second.labels]).toEqual([{ day: '2026-11-27' }, { day: '2026-11-28' }]);
  expect(await Promise.all([first.run_id, run_id, second.run_id].map(dateOf))).toEqual([
    '2026-11-27',
    '2026-11-27',
    '2026-11-28',
  ]);
});

it('takes the version of the moment: of an alias, else the latest', async () => {
  const overlap = 'allow_all';
  const [byAlias, latest] = [await aSchedule({ overlap, alias: 'stable' }), await aSchedule({ overlap })];
  for (const { project_id } of [byAlias, latest]) {
    await setAlias(db, { project_id, pipeline: 'trailer', version: '1' }, 'stable');
  }
  for (const key of [byAlias, latest]) await submit(aStart(key));
  for (const { project_id } of [byAlias, latest]) await aVersion(project_id, { version: '2' });
  for (const key of [byAlias, latest]) await submit(aStart(key, '2026-03-02T04:30:00.000Z'));
  expect((await runsOf(byAlias)).map(({ version }) => version)).toEqual(['1', '1']);
  expect((await runsOf(latest)).map(({ version }) => version)).toEqual(['1', '2']);
});

it('refuses what was paused or deleted meanwhile, whatever Temporal thinks', async () => {
  const [paused, deleted] = [await aSchedule(), await aSchedule()];
  await updateSchedule(db, paused.schedule_id, aBody({ paused: true }));
  await deleteSchedule(db, deleted);
  expect(await submit(aStart(paused))).toEqual({
    refused: { code: 'state_conflict', message: `schedule ${paused.schedule_id} is paused` },
  });
  expect(await submit(aStart(deleted))).toMatchObject({ refused: { code: 'not_found' } });
  expect([...(await runsOf(paused)), ...(await runsOf(deleted))]).toEqual([]);
});

/** The run that stands for a start that did not come about. */
async function failedStartOf(key: ScheduleKey, at?: string) {
  const { scheduled_at, workflow_id } = aStart(key, at);
  const row = await db('run').where({ schedule_id: key.schedule_id, scheduled_at }).first();
  expect(row).toMatchObject({ state: 'failed', pipeline: 'trailer', parent_workflow_id: workflow_id });
  expect(row.finished_at).toBeInstanceOf(Date);
  return row;
}

const nextDay = '2026-03-02T04:30:00.000Z';

it('makes a failed run of what the pipeline no longer takes: its job, or one more run', async () => {
  const key = await aSchedule({ job: { n: 'one' }, labels: { team: 'film' }, priority: 'batch' });
  await aVersion(key.project_id, {
    version: '2',
    job_schema: { type: 'object', properties: { n: { type: 'integer' } } },
  });
  const { refused } = (await submit(aStart(key))) as { refused: { code: string; message: string } };
  expect(refused.code).toBe('job_invalid');
  const run = await failedStartOf(key);
  const asked = { version: '2', labels: { team: 'film' }, priority: 'batch', key_id: 'key_1' };
  expect(run).toMatchObject({ ...asked, error: refused });
  expect(await db('job').where({ job_id: run.job_id }).first()).toMatchObject({ body: { n: 'one' } });
  const types = await db('event').where({ run_id: run.run_id }).orderBy('id').pluck('type');
  expect([types[0], types.at(-1)]).toEqual(['run.queued', 'run.failed']);

  const single = await aSchedule(
    { overlap: 'allow_all' },
    { concurrency: { key: 'one', limit: 1, on_limit: 'reject' } },
  );
  expect(await submit(aStart(single))).toHaveProperty('run_id');
  expect(await submit(aStart(single, nextDay))).toMatchObject({ refused: { code: 'concurrency_limit' } });
  expect((await failedStartOf(single, nextDay)).error.code).toBe('concurrency_limit');
});

it('makes a failed run where a capability has no instance, or a file is of another project', async () => {
  const missing = await aSchedule({}, { steps: [{ id: 'a', capability: 'nobody' }] });
  await submit(aStart(missing));
  expect((await failedStartOf(missing)).error.message).toContain('nobody');
  const foreign = await aSchedule({ job: { clip: `media://${newId('job')}/a.mp4` } });
  await submit(aStart(foreign));
  expect((await failedStartOf(foreign)).error.code).toBe('media_unknown');
});

it.each([
  ['alias', { alias: 'gone' }],
  ['version', { version: '9' }],
])('makes a failed run of the latest version where the %s is gone', async (what, body) => {
  const key = await aSchedule(body);
  await submit(aStart(key));
  expect(await failedStartOf(key)).toMatchObject({
    version: '1',
    error: { code: 'not_found', message: expect.stringContaining(what) },
  });
});

it('makes one failed run of a start, however often it is refused, and starts at its next time', async () => {
  const key = await aSchedule({ alias: 'later' });
  await Promise.all([submit(aStart(key)), submit(aStart(key)), submit(aStart(key))]);
  expect(await runsOf(key)).toHaveLength(1);
  await setAlias(db, { project_id: key.project_id, pipeline: 'trailer', version: '1' }, 'later');
  expect(await submit(aStart(key, nextDay))).toHaveProperty('run_id');
  expect((await runsOf(key)).map(({ state }) => state)).toEqual(['failed', 'queued']);
});

it('makes a failed run of one more run than the project may have open', async () => {
  const key = await aSchedule({ overlap: 'allow_all' });
  const answers: object[] = [];
  for (const day of [1, 2, 3, 4]) answers.push(await submit(aStart(key, `2026-03-0${day}T04:30:00.000Z`)));
  const message = 'the project has 3 open runs; OPEN_RUNS_PER_PROJECT allows 3';
  const refused = { code: 'open_runs_limit', message };
  expect(answers.at(-1)).toEqual({ refused });
  expect((await failedStartOf(key, '2026-03-04T04:30:00.000Z')).error).toEqual(refused);
});

it('skips while a run of it is open, counts that once on the schedule, and makes no run of it', async () => {
  const key = await aSchedule();
  const first = (await submit(aStart(key))) as { run_id: string };
  const skipped = `run ${first.run_id} of this schedule is still open, and overlap is skip`;
  for (const _ of [1, 2]) expect(await submit(aStart(key, nextDay))).toEqual({ skipped });
  expect(await submit(aStart(key, '2026-03-03T04:30:00.000Z'))).toEqual({ skipped });
  const counted = { skips: 2, skip_reason: skipped, skipped_at: new Date('2026-03-03T04:30:00Z') };
  expect(await db('schedule').where({ schedule_id: key.schedule_id }).first()).toMatchObject(counted);
  expect(await runsOf(key)).toHaveLength(1);
  await db('run').where({ run_id: first.run_id }).update({ finished_at: db.fn.now(), state: 'failed' });
  expect(await submit(aStart(key, '2026-03-04T04:30:00.000Z'))).toHaveProperty('run_id');
});

it('starts one of two that come at once where it skips', async () => {
  const key = await aSchedule();
  const answers = await Promise.all(
    [1, 2, 3].map((day) => submit(aStart(key, `2026-03-0${day}T04:30:00.000Z`))),
  );
  expect(answers.filter((answer) => 'run_id' in answer)).toHaveLength(1);
});

it('counts starts by what became of them', async () => {
  const counted: Record<string, number> = {};
  const metrics = {
    ...noTelemetry.metrics,
    add: (name: string, labels: Readonly<Record<string, string>>, by = 1) => {
      if (name === 'schedule_starts_total')
        counted[labels.outcome ?? ''] = (counted[labels.outcome ?? ''] ?? 0) + by;
    },
  };
  const telemetry = { ...noTelemetry, metrics };
  const [key, refused] = [await aSchedule(), await aSchedule({ alias: 'gone' })];
  for (const at of ['2026-03-01T04:30:00.000Z', nextDay])
    await submitScheduledRun({ ...ctx, telemetry }, aStart(key, at));
  for (const _ of [1, 2]) await submitScheduledRun({ ...ctx, telemetry }, aStart(refused));
  expect(counted).toEqual({ started: 1, skipped: 1, refused: 1 });
});

it('reports for a run that it meets whether its end will be notified: not when it has ended, nor for another start', async () => {
  const key = await aSchedule();
  const first = await submit(aStart(key));
  expect(await submit(aStart(key))).toEqual(first);
  expect(await submit({ ...aStart(key), workflow_id: 'scheduled/x/other' })).toEqual({
    ...first,
    has_ended: true,
  });
  await db('run').where({ schedule_id: key.schedule_id }).update({ finished_at: db.fn.now() });
  expect(await submit(aStart(key))).toEqual({ ...first, has_ended: true });
});
