/** No step reads or writes a file of another project, wherever its input comes from. */
import { Readable } from 'node:stream';
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import { beforeAll, expect, test } from 'vitest';
import { aProject, aRun, type StoredRun } from '../../support/factories.ts';
import { answer, type Instance } from '../../support/fleet.ts';
import { useSteps } from '../../support/steps.ts';

const world = useSteps();
let instance: Instance;
let foreign: string;

async function aJobOf(projectId: string, body: object = {}): Promise<string> {
  const run = await aRun(world.db, { project_id: projectId });
  await world
    .db('job')
    .where({ job_id: run.job_id })
    .update({ body: JSON.stringify(body) });
  return run.job_id;
}

beforeAll(async () => {
  instance = await world.register({ name: 'reader' });
  foreign = `media://${await aJobOf((await aProject(world.db)).project_id)}/secret.txt`;
});

async function start(input: object, over: { job?: object; for_each?: unknown } = {}): Promise<StoredRun> {
  const { job = {}, ...rest } = over;
  const definition = {
    pipeline: 'p',
    version: '1',
    steps: [{ id: 'a', capability: 'reader', input, ...rest }],
  } as unknown as PipelineDefinition;
  const run = await aRun(world.db, { definition, project_id: world.projectId() });
  await world
    .db('job')
    .where({ job_id: run.job_id })
    .update({ body: JSON.stringify(job) });
  return run;
}

test.each<[string, object, () => { job?: object; for_each?: unknown }]>([
  ['its job', { path: '{{ job.clip }}' }, () => ({ job: { clip: foreign } })],
  [
    'the id of a job in its job',
    { path: 'media://{{ job.id }}/secret.txt' },
    () => ({ job: { id: idOf(foreign) } }),
  ],
  ['a list', { clips: [{ path: '{{ job.clip }}' }] }, () => ({ job: { clip: foreign } })],
  ['where it is to write', { output_path: '{{ job.clip }}' }, () => ({ job: { clip: foreign } })],
])('a step is refused when its input takes a foreign file from %s', async (_, input, over) => {
  const run = await start(input, over());
  const before = instance.execs.length;
  const end = await world.newWorker().execute(run, 'a');
  expect(end).toMatchObject({
    kind: 'failed',
    error: { code: 'media_unknown', message: expect.stringContaining(foreign) },
  });
  expect(instance.execs.length).toBe(before);
});

test('a step is refused when the definition names a foreign file', async () => {
  const end = await world.newWorker().execute(await start({ path: foreign }), 'a');
  expect(end).toMatchObject({ kind: 'failed', error: { code: 'media_unknown' } });
});

test('an item with a foreign file is refused, the others are done', async () => {
  const run = await start({ path: '{{ item }}' }, { for_each: { items: ['text', foreign] } });
  await world.newWorker().decide({ run_id: run.run_id, step_ids: ['a'] });
  const worker = world.newWorker();
  const ends = [
    await worker.execute(run, { step_id: 'a', item: 1 }),
    await worker.execute(run, { step_id: 'a', item: 2 }),
  ];
  expect(ends).toMatchObject([{ kind: 'succeeded' }, { kind: 'failed', error: { code: 'media_unknown' } }]);
});

test('files of its own job and of others of its project go through', async () => {
  const other = await aJobOf(world.projectId());
  const run = await start({ paths: ['media://{{ run.job_id }}/a', `media://${other}/b`] });
  expect(await world.newWorker().execute(run, 'a')).toMatchObject({ kind: 'succeeded' });
});

test('a refused input that names a file which is not there fails its step, and no ladder is climbed', async () => {
  const picky = await world.register({ name: 'picky' });
  picky.handle = (_exec, response) => answer(response, 422, { ok: false, error: 'cannot read it' });
  const definition = {
    steps: [
      {
        id: 'a',
        capability: 'picky',
        input: {
          clips: ['media://{{ run.job_id }}/typo.mp4'],
          output_path: 'media://{{ run.job_id }}/out.mp4',
        },
      },
    ],
  };
  const run = await aRun(world.db, { definition, project_id: world.projectId() });
  const reference = `media://${run.job_id}/typo.mp4`;
  const end = await world.newWorker().execute(run, { step_id: 'a', escalates: true });
  expect(end).toMatchObject({
    kind: 'failed',
    error: {
      code: 'media_unknown',
      message: expect.stringMatching(
        new RegExp(`^/clips/0: there is no file ${reference}; .*cannot read it`),
      ),
      details: { errors: [{ pointer: '/clips/0' }] },
    },
  });

  const again = await aRun(world.db, { definition, project_id: world.projectId() });
  const path = { job_id: again.job_id, file: 'typo.mp4' };
  await world
    .media()
    .put(path, Readable.from([Buffer.from('x')]), { contentType: 'video/mp4', limitBytes: 10 });
  const climbing = world.newWorker().execute(again, { step_id: 'a', escalates: true });
  await expect(climbing).rejects.toThrow('no step of these tests escalates');
});

function idOf(reference: string): string {
  return reference.split('/')[2] ?? '';
}
