import type { RunEvent } from '@capstan/core/contracts/event';
import type { Run } from '@capstan/core/contracts/run';
import type { RerunPreview } from '@capstan/core/contracts/run-control';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { finishRun } from '../../src/db/run/run.ts';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import { anInstance } from '../support/factories.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
  await anInstance(api.db, { name: 'x' });
  for (const version of ['1', '2']) {
    await api.call('/v1/pipelines', { body: { ...definition, version, steps: stepsOf(version) } });
  }
});
afterAll(() => api.close());

function stepsOf(version: string) {
  return [
    { id: 'cut', capability: 'x', input: { clip: '{{ job.clip }}' } },
    { id: 'each', capability: 'x', for_each: { items: '{{ job.list }}' }, input: { n: '{{ item }}' } },
    {
      id: 'send',
      capability: 'x',
      depends_on: ['cut', 'each'],
      input: { version: version === '2' ? 'second' : 'first' },
    },
  ];
}
const definition = { pipeline: 'again', labels: { team: 'a', clip: 'clip {{ job.clip }}' } };

/** It ran: `cut` succeeded, `each` too with one item tolerated, `send` failed. */
async function anEndedRun(cutOutput: object = { path: 'nothing' }): Promise<Run> {
  const body = { pipeline: 'again', version: '1', job: { clip: 'a', list: [1, 2] }, budget_ceiling_usd: 3 };
  const [, run] = await readJson<Run>(api.call('/v1/runs', { body }));
  const step = { run_id: run.run_id, state: 'succeeded', finished_at: new Date() };
  await api.db('step').insert([
    { ...step, step_id: 'cut', output: JSON.stringify(cutOutput), revision: 2 },
    { ...step, step_id: 'each', items: 2 },
    { ...step, step_id: 'each', item: 1, output: '"one"' },
    { ...step, step_id: 'each', item: 2, state: 'failed', error: { code: 'gave_up', message: 'no' } },
    { ...step, step_id: 'send', state: 'failed', error: { code: 'input_rejected', message: 'no' } },
  ]);
  await finishRun(api.db, {
    run_id: run.run_id,
    state: 'failed',
    output: undefined,
    error: null,
    step_ids: [],
  });
  return run;
}

function rerun<Body = Run>(
  { run_id }: Pick<Run, 'run_id'>,
  body: object,
  headers: Record<string, string> = {},
) {
  return readJson<Body>(api.call(`/v1/runs/${run_id}/rerun`, { body, headers }));
}
async function preview(run: Run, body: object): Promise<RerunPreview> {
  return (await rerun<RerunPreview>(run, { ...body, preview: true }))[1];
}
async function countRuns(): Promise<number> {
  return Number((await api.db('run').count('* as n').first())?.n);
}

describe('a rerun', () => {
  test('may have another ceiling than the run that it repeats, or none', async () => {
    const old = await anEndedRun();
    const [status, run] = await rerun(old, { only_failed: true, budget_ceiling_usd: 5 });
    expect([status, run.budget_ceiling_usd]).toEqual([202, 5]);
    const [, free] = await rerun(old, { budget_ceiling_usd: null });
    expect(free.budget_ceiling_usd).toBeNull();
    const [, shown] = await readJson<Run>(api.call(`/v1/runs/${run.run_id}`));
    expect(shown.budget_ceiling_usd).toBe(5);
  });

  test('from a step takes the results of the rest over by value, with their items and tolerated failures', async () => {
    const old = await anEndedRun();
    const [status, run] = await rerun(old, { from: ['send'] });
    expect([status, run.rerun_of, run.job_id]).toEqual([202, old.run_id, old.job_id]);
    expect(run).toMatchObject({ labels: { team: 'a', clip: 'clip a' }, budget_ceiling_usd: 3 });
    const [, shown] = await readJson<Run>(api.call(`/v1/runs/${run.run_id}`));
    expect(shown.steps).toMatchObject([
      { id: 'cut', state: 'reused', reused_from: old.run_id, revision: 2, cost_usd: 0 },
      { id: 'each', state: 'reused', items: { reused: 1, failed: 1 } },
      { id: 'send', state: 'pending' },
    ]);
    expect(run.steps.map(({ state }) => state)).toEqual(shown.steps.map(({ state }) => state));
    const [, item] = await readJson(api.call(`/v1/runs/${run.run_id}/steps/each?item=1`));
    expect(item).toMatchObject({ id: 'each', item: 1, state: 'reused', output: 'one' });
    const events: RunEvent[] = await api
      .db('event')
      .where({ run_id: run.run_id, type: 'step.reused' })
      .orderBy('id');
    expect(events.map(({ step_id, data }) => [step_id, data])).toEqual([
      ['cut', { reused_from: old.run_id }],
      ['each', { reused_from: old.run_id }],
    ]);
    // And once more: it is the first run that really made them.
    await finishRun(api.db, {
      run_id: run.run_id,
      state: 'cancelled',
      output: undefined,
      error: null,
      step_ids: [],
    });
    const [, third] = await rerun(run, { from: ['send'] });
    const [, again] = await readJson<Run>(api.call(`/v1/runs/${third.run_id}`));
    expect(again.steps[0]).toMatchObject({ state: 'reused', reused_from: old.run_id });
  });

  test('of what failed repeats failed items alone, also in a rerun of a rerun that never came to them', async () => {
    const old = await anEndedRun();
    const repeated = {
      reused: ['cut'],
      skipped: [],
      executed: [
        { id: 'each', reason: 'one of its items failed before', items: { all: 2, kept: 1, repeated: '2' } },
        { id: 'send', reason: 'it did not succeed before: failed' },
      ],
      runs: [],
      calls: { min: 2, max: 2 },
    };
    expect(await preview(old, { only_failed: true })).toEqual(repeated);
    const [, run] = await rerun(old, { only_failed: true });
    const itemsOf = ({ run_id }: Run) =>
      api
        .db('step')
        .where({ run_id, step_id: 'each' })
        .orderBy('item')
        .select('item', 'state', 'output', 'reused_from');
    const kept = [{ item: 1, state: 'reused', output: 'one', reused_from: old.run_id }];
    expect(await itemsOf(run)).toEqual(kept);
    const end = { state: 'cancelled', output: undefined, error: null } as const;
    await finishRun(api.db, { run_id: run.run_id, ...end, step_ids: ['cut', 'each', 'send'] });
    const { executed, calls } = await preview(run, { only_failed: true });
    expect([executed[0]?.items, calls]).toEqual([repeated.executed[0]?.items, repeated.calls]);
    const [, third] = await rerun(run, { only_failed: true });
    expect(await itemsOf(third)).toEqual(kept);
  });

  test('keeps an item only if the files exist that its result names', async () => {
    const old = await anEndedRun();
    const gone = `media://${old.job_id}/gone.mp4`;
    const first = api.db('step').where({ run_id: old.run_id, step_id: 'each', item: 1 });
    await first.update({ output: JSON.stringify({ path: gone }) });
    const { executed } = await preview(old, { from: ['send'] });
    expect(executed[0]).toEqual({
      id: 'each',
      reason: `${gone}, which its result names, is gone`,
      items: { all: 2, kept: 0, repeated: '1-2' },
    });
  });

  test('of 10,000 items lists ranges, and copies the results as rows', async () => {
    const list = Array.from({ length: 10_000 }, (_, index) => index);
    const [, old] = await readJson<Run>(
      api.call('/v1/runs', { body: { pipeline: 'again', version: '1', job: { clip: 'a', list } } }),
    );
    const { run_id } = old;
    await api.db.raw(
      `insert into step (run_id, step_id, item, state, output)
       select ?, 'each', n, case when n % 2000 = 0 then 'failed' else 'succeeded' end, '1' from generate_series(1, 10000) n`,
      [run_id],
    );
    await api.db('step').insert({ run_id, step_id: 'each', state: 'failed', items: 10_000 });
    await finishRun(api.db, {
      run_id,
      state: 'failed',
      output: undefined,
      error: null,
      step_ids: ['cut', 'send'],
    });
    const { executed } = await preview(old, { only_failed: true });
    const items = { all: 10_000, kept: 9_995, repeated: '2000,4000,6000,8000,10000' };
    expect(executed.find(({ id }) => id === 'each')?.items).toEqual(items);
    const [, run] = await rerun(old, { only_failed: true });
    const [row] = await api.db('step').where({ run_id: run.run_id, state: 'reused' }).count('* as n');
    expect(Number(row?.n)).toBe(9_995);
  });

  test('without a wish does everything again, and with a preview nothing at all', async () => {
    const old = await anEndedRun();
    const before = await countRuns();
    const { reused, executed } = await preview(old, {});
    expect([reused, executed.map(({ id }) => id)]).toEqual([[], ['cut', 'each', 'send']]);
    expect(await countRuns()).toBe(before);
    const [, run] = await rerun(old, {});
    expect(run.steps.map(({ state }) => state)).toEqual(['pending', 'pending', 'pending']);
  });

  test('of another job, or another version, repeats the steps that differ', async () => {
    const old = await anEndedRun();
    await api
      .db('step')
      .where({ run_id: old.run_id, item: 2 })
      .update({ state: 'succeeded', output: '"two"' });
    expect(await preview(old, { only_failed: true, job: { clip: 'b', list: [1, 2] } })).toMatchObject({
      reused: ['each'],
      executed: [
        { id: 'cut', reason: 'job.clip is another value' },
        { id: 'send', reason: 'it did not succeed before: failed' },
      ],
    });
    expect(await preview(old, { only_failed: true, job: { clip: 'a', list: [3, 2, 1] } })).toMatchObject({
      reused: ['cut'],
      executed: [
        { id: 'each', reason: 'job.list is another value', items: { all: 3, kept: 2, repeated: '1' } },
        { id: 'send' },
      ],
      calls: { min: 2, max: 2 },
    });
    await api.db('step').where({ run_id: old.run_id, step_id: 'send' }).update({ state: 'succeeded' });
    expect(await preview(old, { only_failed: true, version: '2' })).toMatchObject({
      reused: ['cut', 'each'],
      executed: [{ id: 'send', reason: 'its definition is another one' }],
    });
    const [, run] = await rerun(old, { only_failed: true, job: { clip: 'b', list: [1, 2] }, version: '2' });
    expect([run.version, run.job_id === old.job_id]).toEqual(['2', false]);
    expect(run.labels).toEqual({ team: 'a', clip: 'clip b' });
  });

  test('keeps the event that a step waited for, and another job waits for its own', async () => {
    const steps = [
      { id: 'paid', event: { name: 'paid', key: '{{ job.order }}' } },
      { id: 'send', capability: 'x', input: { sum: '{{ steps.paid.output.sum }}' } },
    ];
    const body = { definition: { pipeline: 'ordered', version: '1', steps }, job: { order: 7 } };
    const [, old] = await readJson<Run>(api.call('/v1/runs', { body }));
    const step = { run_id: old.run_id, finished_at: new Date() };
    await api.db('step').insert([
      { ...step, step_id: 'paid', state: 'succeeded', output: '{"sum":12}', received_event: 'evt_1' },
      { ...step, step_id: 'send', state: 'failed', error: { code: 'input_rejected', message: 'no' } },
    ]);
    const end = { state: 'failed', output: undefined, error: null, step_ids: [] } as const;
    await finishRun(api.db, { run_id: old.run_id, ...end });
    expect(await preview(old, { only_failed: true, job: { order: 8 } })).toMatchObject({
      executed: [{ id: 'paid', reason: 'job.order is another value' }, { id: 'send' }],
    });
    const [, run] = await rerun(old, { only_failed: true });
    const [, paid] = await readJson(api.call(`/v1/runs/${run.run_id}/steps/paid`));
    expect(paid).toMatchObject({ state: 'reused', output: { sum: 12 } });
    const event = { key: '7', payload: { sum: 13 } };
    const [, receipt] = await readJson(api.call('/v1/events/paid', { body: event }));
    expect(receipt).toMatchObject({ waiting: 0 });
  });

  test('repeats a step that names a deleted file', async () => {
    const old = await anEndedRun();
    const here = `media://${old.job_id}/a.mp4`;
    const gone = `media://${old.job_id}/b.mp4`;
    await api.call(`/v1/media/${old.job_id}/a.mp4`, {
      method: 'PUT',
      body: 'film',
      headers: { 'content-type': 'video/mp4' },
    });
    const setOutput = (output: object) =>
      api
        .db('step')
        .where({ run_id: old.run_id, step_id: 'cut' })
        .update({ output: JSON.stringify(output) });
    await setOutput({ path: here, text: `it is not ${gone}.` });
    expect((await preview(old, { from: ['send'] })).reused).toEqual(['cut', 'each']);
    await setOutput({ files: [here, gone] });
    expect((await preview(old, { from: ['send'] })).executed).toMatchObject([
      { id: 'cut', reason: `${gone}, which its result names, is gone` },
      { id: 'send' },
    ]);
  });

  test('with a key is one run, however often it is asked for', async () => {
    const old = await anEndedRun();
    const headers = { 'idempotency-key': 'once' };
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => rerun(old, { only_failed: true }, headers)),
    );
    expect(new Set(answers.map(([, { run_id }]) => run_id)).size).toBe(1);
    expect((await rerun(old, {}, headers))[1]).toMatchObject({ code: 'idempotency_key_reuse' });
  });

  test('of an open run is refused, but not its preview', async () => {
    const [, run] = await readJson<Run>(
      api.call('/v1/runs', { body: { pipeline: 'again', job: { clip: 'a', list: [] } } }),
    );
    expect(await rerun(run, {})).toEqual([409, expect.objectContaining({ code: 'state_conflict' })]);
    expect((await preview(run, { only_failed: true })).executed).toHaveLength(3);
  });

  test('from a step that there is not, or of a version that there is not, is refused', async () => {
    const old = await anEndedRun();
    expect(await rerun(old, { from: ['cut', 'sned'] })).toEqual([
      422,
      expect.objectContaining({
        code: 'request_invalid',
        errors: [expect.objectContaining({ pointer: '/from/1', suggestion: 'did you mean "send"?' })],
      }),
    ]);
    expect((await rerun(old, { version: '9' }))[0]).toBe(404);
  });

  test('is started like any run', async () => {
    const [, run] = await rerun(await anEndedRun(), { from: ['send'] });
    await waitFor('its start', async () => {
      const row = await api.db('run').where({ run_id: run.run_id }).first('start_delivered_at');
      return row?.start_delivered_at != null;
    });
  });
});
