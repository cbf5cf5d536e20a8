import type { DispatchChoice } from '@capstan/core/contracts/decision';
import type { Plan } from '@capstan/core/contracts/plan';
import type { Run } from '@capstan/core/contracts/run';
import type { BulkAnswer } from '@capstan/core/contracts/run-control';
import type { StepDetail } from '@capstan/core/contracts/run-step';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { finishRun } from '../../src/db/run/run.ts';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import { execOn, registerInstance } from '../support/direct-calls.ts';
import type { Instance } from '../support/fleet.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
let instance: Instance;
beforeAll(async () => {
  api = await startTestApi();
  instance = await registerInstance(api, { name: 'quick' });
});
afterAll(async () => {
  await instance.stop();
  await api.close();
});

const definition = {
  pipeline: 'open',
  version: '1',
  steps: [
    { id: 'a', capability: 'quick' },
    { id: 'b', capability: 'quick', for_each: { items: [1, 2] } },
    { id: 'c', capability: 'quick', tags: ['none'], depends_on: ['a'] },
    { id: 'once', capability: 'quick', retry: { max: 0 } },
    { id: 'asked', capability: 'quick', dispatch: 'queued' },
    { id: 'pause', wait: '1s' },
  ],
};

async function plan() {
  const [, { steps }] = await readJson<Plan>(api.call('/v1/plan', { body: { definition, job: {} } }));
  return steps;
}
async function submit(): Promise<Run> {
  return (await readJson<Run>(api.call('/v1/runs', { body: { definition, job: {} } })))[1];
}
async function read(runId = ''): Promise<Run> {
  return (await readJson<Run>(api.call(`/v1/runs/${runId}`)))[1];
}
async function untilKnown(what: string, expected: Partial<DispatchChoice>): Promise<void> {
  await waitFor(what, async () => {
    const known = (await plan())[0]?.dispatch;
    return Object.entries(expected).every(([name, value]) => known?.[name as keyof DispatchChoice] === value);
  });
}
/** A busy machine has its own opinion of how long a call takes. */
async function setSpeed(duration_ms: number): Promise<void> {
  await api.db('instance').where({ name: 'quick' }).update({ duration_ms, deviation_ms: 1 });
}
function inlineOf({ steps }: Run): string[] {
  return steps.filter(({ inline }) => inline).map(({ id }) => id);
}

describe('a step that leaves open whether it is queued', () => {
  let first: Run;

  test('is queued as long as little is known of its calls', async () => {
    expect((await plan()).map(({ dispatch }) => dispatch && `${dispatch.how} ${dispatch.code}`)).toEqual([
      ...[
        'queued unknown',
        'queued unknown',
        'queued unknown',
        'queued at_most_once',
        'queued asked',
        undefined,
      ],
    ]);
    first = await submit();
    expect(inlineOf(first)).toEqual([]);
    expect(first.dispatch).toMatchObject([
      { capability: 'quick', how: 'queued', code: 'unknown', calls: 0 },
      { capability: 'quick', tags: ['none'], how: 'queued', code: 'unknown' },
    ]);
  });

  test('is inline from the next run on after five short calls, in plan, run and step', async () => {
    for (let call = 0; call < 5; call++) await execOn(api, 'quick');
    await untilKnown('five calls to be known', { calls: 5 });
    await setSpeed(5);
    await untilKnown('them to be short', { how: 'inline' });
    const run = await submit();
    expect(inlineOf(run)).toEqual(['a', 'b']);
    const { steps, dispatch } = await read(run.run_id);
    expect([inlineOf({ ...run, steps }), dispatch]).toEqual([['a', 'b'], run.dispatch]);
    expect(dispatch?.[0]).toMatchObject({
      code: 'short',
      calls: 5,
      message: expect.stringContaining('5 calls'),
    });
    const [, step] = await readJson<StepDetail>(api.call(`/v1/runs/${run.run_id}/steps/a`));
    const { capability: _, ...why } = dispatch?.[0] ?? { capability: '' };
    expect(step.dispatch).toEqual(why);
    const [, pause] = await readJson<StepDetail>(api.call(`/v1/runs/${run.run_id}/steps/pause`));
    expect(pause.dispatch).toBeUndefined();
    expect(inlineOf(await read(first.run_id))).toEqual([]);
  });

  test('is decided for each run of many, and for a run that repeats another', async () => {
    const runs = [
      { definition, job: {} },
      { definition, job: {} },
    ];
    const [, { items }] = await readJson<BulkAnswer>(api.call('/v1/runs/bulk', { body: { runs } }));
    for (const { run_id } of items) expect(inlineOf(await read(run_id))).toEqual(['a', 'b']);
    const end = { state: 'failed', output: undefined, error: null, step_ids: [] } as const;
    await finishRun(api.db, { run_id: first.run_id, ...end });
    const [, again] = await readJson<Run>(api.call(`/v1/runs/${first.run_id}/rerun`, { body: {} }));
    expect(inlineOf(again)).toEqual(['a', 'b']);
  });

  test('is queued again from the next run on when its calls have become slow', async () => {
    const before = await submit();
    await setSpeed(900);
    await untilKnown('it to be slow', { how: 'queued' });
    const run = await submit();
    expect([inlineOf(run), inlineOf(await read(before.run_id))]).toEqual([[], ['a', 'b']]);
    expect(run.dispatch?.[0]).toMatchObject({ code: 'slow' });
  });
});
