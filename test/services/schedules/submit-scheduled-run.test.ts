import { beforeAll, expect, it } from 'vitest';
import type { PipelineDefinition } from '../../../src/contracts/pipeline.ts';
import { ScheduleRequest } from '../../../src/contracts/schedule.ts';
import type { ScheduledStart } from '../../../src/core/workflow-payloads.ts';
import { insertVersion, setAlias } from '../../../src/db/pipeline.ts';
import {
  deleteSchedule,
  insertSchedule,
  type ScheduleKey,
  updateSchedule,
} from '../../../src/db/schedule.ts';
import { newId } from '../../../src/services/ids.ts';
import { storeDefinition } from '../../../src/services/pipelines/pipeline-service.ts';
import { submitScheduledRun } from '../../../src/services/schedules/scheduled-runs.ts';
import { useDatabase } from '../../support/database.ts';
import { anInstance, aProject } from '../../support/factories.ts';
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

it('starts one run for each time, however often it is asked, with what the schedule says', async () => {
  const key = await aSchedule({
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

it('takes the version of the moment: of an alias, else the latest', async () => {
  const [byAlias, latest] = [await aSchedule({ alias: 'stable' }), await aSchedule()];
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

it('refuses what the pipeline no longer takes: its job, or one more run', async () => {
  const key = await aSchedule({ job: { n: 'one' } });
  await aVersion(key.project_id, {
    version: '2',
    job_schema: { type: 'object', properties: { n: { type: 'integer' } } },
  });
  expect(await submit(aStart(key))).toMatchObject({ refused: { code: 'job_invalid' } });

  const single = await aSchedule({}, { concurrency: { key: 'one', limit: 1, on_limit: 'reject' } });
  expect(await submit(aStart(single))).toHaveProperty('run_id');
  const second = await submit(aStart(single, '2026-03-02T04:30:00.000Z'));
  expect(second).toMatchObject({ refused: { code: 'concurrency_limit' } });
});

it('refuses one more run than the project may have open', async () => {
  const key = await aSchedule();
  const answers: object[] = [];
  for (const day of [1, 2, 3, 4]) answers.push(await submit(aStart(key, `2026-03-0${day}T04:30:00.000Z`)));
  expect(answers.at(-1)).toEqual({
    refused: { code: 'open_runs_limit', message: 'the project has 3 open runs; allowed are 3' },
  });
  expect(await runsOf(key)).toHaveLength(3);
});

it('says of a run that it meets whether it will be told of its end: not when it has ended, nor of another start’s', async () => {
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
