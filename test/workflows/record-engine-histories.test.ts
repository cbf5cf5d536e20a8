/** As record-histories, of what a definition may say about order, number and waits, and of what people do to a run. */
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { Review } from '../../src/contracts/review.ts';
import type { Run } from '../../src/contracts/run.ts';
import { type Capstan, startCapstan } from '../support/capstan.ts';
import { answer, echo, type Instance, startInstance } from '../support/fleet.ts';
import { type HistoryRecorder, startHistoryRecorder } from '../support/history-recorder.ts';
import { decide } from '../support/reviews.ts';
import { waitFor } from '../support/wait.ts';

let capstan: Capstan;
let instance: Instance;
let recorder: HistoryRecorder;

function step(id: string, extra: object = {}) {
  return { id, capability: 'echo', input: {}, ...extra };
}
const off = { escalate: { enabled: false } };

describe.runIf(process.env.RECORD_HISTORIES)('histories of the engine', () => {
  beforeAll(async () => {
    // Small, so that a run of a few dozen steps moves on.
    capstan = await startCapstan({ HISTORY_EVENTS: '100' });
    recorder = await startHistoryRecorder(capstan);
    instance = await startInstance(capstan, { name: 'echo' });
  });
  afterAll(async () => {
    await instance?.stop();
    await capstan?.stop();
    await recorder?.close();
  });

  const submit = async (steps: object[], extra: object = {}): Promise<Run> =>
    capstan.submit(steps, {}, extra);
  const awaiting = async (runId: string, what: string): Promise<void> => {
    await waitFor(`the run to wait for ${what}`, async () => {
      const { body } = await capstan.request<Run>('GET', `/v1/runs/${runId}`);
      return body.awaiting?.some((one) => one === what) === true;
    });
  };

  /** The question that the run waits for, also of one of its items. */
  const questionOf = (runId: string): Promise<Review> =>
    waitFor('a question', async () => {
      const { body } = await capstan.request<{ items: Review[] }>(
        'GET',
        `/v1/reviews?run_id=${runId}&state=open`,
      );
      return body.items[0];
    });

  test('decided', async () => {
    const run = await submit([
      step('first', { when: 'true' }),
      step('left-out', { when: 'false' }),
      step('after', { depends_on: ['left-out'] }),
      step('last', { depends_on: ['left-out', 'first'], run_if: 'any_succeeded' }),
    ]);
    await recorder.keep('decided', run.run_id);
  });

  test('continued', async () => {
    instance.handle = (exec, response) =>
      exec.input.fails === true ? answer(response, 422, { ok: false, error: 'no' }) : echo(exec, response);
    const run = await submit([
      step('first', { input: { fails: true }, on_error: 'continue', ...off }),
      step('instead', { depends_on: ['first'], run_if: 'any_failed' }),
      step('last', { depends_on: ['first', 'instead'], run_if: 'all_done' }),
    ]);
    await recorder.keep('continued', run.run_id);
    instance.handle = echo;
  });

  test('items', async () => {
    instance.handle = (exec, response) =>
      exec.input.n === 2 ? answer(response, 422, { ok: false, error: 'no' }) : echo(exec, response);
    const each = { items: [1, 2, 3, 4], max_parallel: 2, tolerate: 1 };
    const run = await submit([
      step('each', { for_each: each, input: { n: '{{ item }}' }, ...off }),
      step('last', { input: { all: '{{ steps.each.output }}' } }),
    ]);
    await recorder.keep('items', run.run_id);
    const failed = await submit([
      step('each', { for_each: { ...each, tolerate: 0 }, input: { n: '{{ item }}' }, ...off }),
    ]);
    await recorder.keep('items-failed', failed.run_id);
    instance.handle = echo;
  });

  test('item-escalated', async () => {
    instance.handle = (exec, response) =>
      exec.input.n === 5 ? echo(exec, response) : answer(response, 422, { ok: false, error: 'n must be 5' });
    const run = await submit([step('each', { for_each: { items: [5, 6] }, input: { n: '{{ item }}' } })]);
    const review = await questionOf(run.run_id);
    await decide(capstan, review, { action: 'edit', input: { n: 5 }, remember: false });
    await recorder.keep('item-escalated', run.run_id);
    instance.handle = echo;
  });

  test('waited', async () => {
    const run = await submit([{ id: 'pause', wait: '200ms' }, step('last', { depends_on: ['pause'] })]);
    await recorder.keep('waited', run.run_id);
  });

  test('asked', async () => {
    const run = await submit([
      { id: 'ask', review: { title: 'Go on?' } },
      step('last', { input: { said: '{{ steps.ask.output }}' } }),
    ]);
    const review = await questionOf(run.run_id);
    await decide(capstan, review, { action: 'output', output: { go: true } });
    await recorder.keep('asked', run.run_id);
  });

  test('nested', async () => {
    const definition = { pipeline: 'inner', version: '1', steps: [step('first')] };
    await capstan.request('POST', '/v1/pipelines', definition);
    const run = await submit([
      { id: 'inner', pipeline: 'inner@1', input: { a: 1 } },
      step('last', { input: { all: '{{ steps.inner.output }}' } }),
    ]);
    await recorder.keep('nested', run.run_id);
  });

  test('paused', async () => {
    const before = instance.execs.length;
    let release: () => void = () => undefined;
    instance.handle = (exec, response) => {
      release = () => void echo(exec, response);
    };
    const run = await submit([step('first'), step('second', { depends_on: ['first'] })]);
    await waitFor('the call to arrive', () => instance.execs.length > before);
    await capstan.request('POST', `/v1/runs/${run.run_id}/pause`, {});
    instance.handle = echo;
    release();
    await capstan.request('POST', `/v1/runs/${run.run_id}/resume`, {});
    await recorder.keep('paused', run.run_id);
  });

  test('raised', async () => {
    const paid = await startInstance(capstan, {
      name: 'paid',
      cost_model: { type: 'per_call', rate_usd: 1 },
    });
    const run = await submit(
      [1, 2].map((n) => ({ ...step(`s${n}`, n === 1 ? {} : { depends_on: ['s1'] }), capability: 'paid' })),
      { budget_ceiling_usd: 1.5 },
    );
    await awaiting(run.run_id, 'budget');
    await capstan.request('POST', `/v1/runs/${run.run_id}/budget`, { budget_ceiling_usd: 5 });
    await recorder.keep('raised', run.run_id);
    await paid.stop();
  });

  test('appeared', async () => {
    const run = await submit([{ ...step('first', { wait_for_capability: '1m' }), capability: 'late' }]);
    await awaiting(run.run_id, 'capability');
    const late = await startInstance(capstan, { name: 'late' });
    await recorder.keep('appeared', run.run_id);
    await late.stop();
  });

  test('cancelled-in-waits', async () => {
    const run = await submit([
      { id: 'pause', wait: '1h' },
      { id: 'ask', review: { title: 'Go on?' } },
      { id: 'inner', pipeline: 'inner@1', input: {}, depends_on: ['pause'] },
    ]);
    await awaiting(run.run_id, 'review');
    await capstan.request('POST', `/v1/runs/${run.run_id}/cancel`, {});
    await recorder.keep('cancelled-in-waits', run.run_id);
  });

  test('inline', async () => {
    const steps = ['a', 'b', 'c'].map((id, at, all) =>
      step(id, { dispatch: 'inline', ...(at === 0 ? {} : { depends_on: [all[at - 1]] }) }),
    );
    await recorder.keep('inline', (await submit(steps)).run_id);
  });

  test('moved-on', async () => {
    const ids = Array.from({ length: 30 }, (_, at) => `s${at}`);
    const run = await submit([
      { id: 'ask', review: { title: 'Go on?' } },
      ...ids.map((id, at) => step(id, at === 0 ? {} : { depends_on: [ids[at - 1]] })),
      step('last', { depends_on: ['ask', 's29'] }),
    ]);
    await waitFor('the chain to end', async () => {
      const { body } = await capstan.request<Run>('GET', `/v1/runs/${run.run_id}`);
      return body.steps.find(({ id }) => id === 's29')?.state === 'succeeded';
    });
    const review: Review = await questionOf(run.run_id);
    await decide(capstan, review, { action: 'output', output: {} });
    await recorder.keepAll('moved-on', run.run_id);
  });

  test('rerun', async () => {
    const first = await submit([step('a'), step('b', { depends_on: ['a'] })]);
    await capstan.ended(first.run_id);
    const { body } = await capstan.request<Run>('POST', `/v1/runs/${first.run_id}/rerun`, { from: ['b'] });
    await recorder.keep('rerun', body.run_id);
  });
});
