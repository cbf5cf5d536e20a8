/** Runs with any order, number and waits that a definition may have, and with the actions of people on a run. */
import type { Review } from '@capstan/core/contracts/review';
import type { Run } from '@capstan/core/contracts/run';
import { answer, echo, startInstance } from '../../test/support/fleet.ts';
import { decide } from '../../test/support/reviews.ts';
import { waitFor } from '../../test/support/wait.ts';
import { type FeatureRecorders, type Recording, step } from './recording.ts';

const off = { escalate: { enabled: false } };

async function recordDecided({ submit, keep }: Recording): Promise<void> {
  const run = await submit([
    step('first', { when: 'true' }),
    step('left-out', { when: 'false' }),
    step('after', { depends_on: ['left-out'] }),
    step('last', { depends_on: ['left-out', 'first'], run_if: 'any_succeeded' }),
  ]);
  await keep('decided', run.run_id);
}

async function recordContinued({ submit, keep, instance }: Recording): Promise<void> {
  instance.handle = (exec, response) =>
    exec.input.fails === true ? answer(response, 422, { ok: false, error: 'no' }) : echo(exec, response);
  const run = await submit([
    step('first', { input: { fails: true }, on_error: 'continue', ...off }),
    step('instead', { depends_on: ['first'], run_if: 'any_failed' }),
    step('last', { depends_on: ['first', 'instead'], run_if: 'all_done' }),
  ]);
  await keep('continued', run.run_id);
  instance.handle = echo;
}

async function recordItems({ submit, keep, instance }: Recording): Promise<void> {
  instance.handle = (exec, response) =>
    exec.input.n === 2 ? answer(response, 422, { ok: false, error: 'no' }) : echo(exec, response);
  const each = { items: [1, 2, 3, 4], max_parallel: 2, tolerate: 1 };
  const run = await submit([
    step('each', { for_each: each, input: { n: '{{ item }}' }, ...off }),
    step('last', { input: { all: '{{ steps.each.output }}' } }),
  ]);
  await keep('items', run.run_id);
  const failed = await submit([
    step('each', { for_each: { ...each, tolerate: 0 }, input: { n: '{{ item }}' }, ...off }),
  ]);
  await keep('items-failed', failed.run_id);
  instance.handle = echo;
}

async function recordItemEscalated(recording: Recording): Promise<void> {
  const { submit, keep, questionOf, instance } = recording;
  instance.handle = (exec, response) =>
    exec.input.n === 5 ? echo(exec, response) : answer(response, 422, { ok: false, error: 'n must be 5' });
  const run = await submit([step('each', { for_each: { items: [5, 6] }, input: { n: '{{ item }}' } })]);
  const review = await questionOf(run.run_id);
  await decide(recording, review, { action: 'edit', input: { n: 5 }, remember: false });
  await keep('item-escalated', run.run_id);
  instance.handle = echo;
}

async function recordWaited({ submit, keep }: Recording): Promise<void> {
  const run = await submit([{ id: 'pause', wait: '200ms' }, step('last', { depends_on: ['pause'] })]);
  await keep('waited', run.run_id);
}

async function recordRounds({ submit, keep, instance }: Recording): Promise<void> {
  instance.handle = (exec, response) =>
    answer(response, 200, { ok: true, output: { status: exec.input.n === 2 ? 'done' : 'running' } });
  const run = await submit([
    step('poll', {
      input: { n: '{{ round.index }}', before: '{{ round.previous.status ?? "none" }}' },
      repeat: { until: 'round.output.status == "done"', max: 5, pause: '200ms' },
    }),
    {
      id: 'count',
      depends_on: ['poll'],
      set: { n: '{{ (round.previous.n ?? 0) + 1 }}' },
      repeat: { until: 'round.output.n == 2', max: 2 },
    },
    step('last', { input: { n: '{{ steps.count.output.n }}' } }),
  ]);
  await keep('rounds', run.run_id);
  instance.handle = echo;
}

async function recordRaced({ submit, keep, instance }: Recording): Promise<void> {
  instance.handle = (exec, response) =>
    exec.input.slow === true ? undefined : answer(response, 200, { ok: true, output: { sure: true } });
  const once = { retry: { max: 0 } };
  const run = await submit([
    step('fast', once),
    step('slow', { input: { slow: true }, ...once }),
    step('behind', { depends_on: ['slow'], ...once }),
    { id: 'person', review: { title: 'Which one?' } },
    { id: 'first', first: 1, depends_on: ['fast', 'behind', 'person'], set: { done: true } },
    step('each', {
      depends_on: ['first'],
      when: 'index > 0',
      for_each: { items: [true, true, false], enough: { if: 'output.sure' } },
      input: { slow: '{{ item }}' },
      ...once,
    }),
  ]);
  await keep('raced', run.run_id);
  instance.handle = echo;
}

async function recordAsked(recording: Recording): Promise<void> {
  const { submit, keep, questionOf } = recording;
  const run = await submit([
    { id: 'ask', review: { title: 'Go on?' } },
    step('last', { input: { said: '{{ steps.ask.output }}' } }),
  ]);
  const review = await questionOf(run.run_id);
  await decide(recording, review, { action: 'output', output: { go: true } });
  await keep('asked', run.run_id);
}

async function recordNested({ submit, keep, request }: Recording): Promise<void> {
  const definition = { pipeline: 'inner', version: '1', steps: [step('first')] };
  await request('POST', '/v1/pipelines', definition);
  const run = await submit([
    { id: 'inner', pipeline: 'inner@1', input: { a: 1 } },
    step('last', { input: { all: '{{ steps.inner.output }}' } }),
  ]);
  await keep('nested', run.run_id);
}

async function recordPaused(recording: Recording): Promise<void> {
  const { submit, keep, request, instance } = recording;
  const before = instance.execs.length;
  let release: () => void = () => undefined;
  instance.handle = (exec, response) => {
    release = () => void echo(exec, response);
  };
  const run = await submit([step('first'), step('second', { depends_on: ['first'] })]);
  await waitFor('the call to arrive', () => instance.execs.length > before);
  await request('POST', `/v1/runs/${run.run_id}/pause`, {});
  instance.handle = echo;
  release();
  await request('POST', `/v1/runs/${run.run_id}/resume`, {});
  await keep('paused', run.run_id);
}

async function recordRaised(recording: Recording): Promise<void> {
  const { submit, keep, awaiting, request } = recording;
  const paid = await startInstance(recording, {
    name: 'paid',
    cost_model: { type: 'per_call', rate_usd: 1 },
  });
  const run = await submit(
    [1, 2].map((n) => ({ ...step(`s${n}`, n === 1 ? {} : { depends_on: ['s1'] }), capability: 'paid' })),
    { budget_ceiling_usd: 1.5 },
  );
  await awaiting(run.run_id, 'budget');
  await request('POST', `/v1/runs/${run.run_id}/budget`, { budget_ceiling_usd: 5 });
  await keep('raised', run.run_id);
  await paid.stop();
}

async function recordAppeared(recording: Recording): Promise<void> {
  const { submit, keep, awaiting } = recording;
  const run = await submit([{ ...step('first', { wait_for_capability: '1m' }), capability: 'late' }]);
  await awaiting(run.run_id, 'capability');
  const late = await startInstance(recording, { name: 'late' });
  await keep('appeared', run.run_id);
  await late.stop();
}

async function recordCancelledInWaits(recording: Recording): Promise<void> {
  const { submit, keep, awaiting, request } = recording;
  const run = await submit([
    { id: 'pause', wait: '1h' },
    { id: 'ask', review: { title: 'Go on?' } },
    { id: 'inner', pipeline: 'inner@1', input: {}, depends_on: ['pause'] },
  ]);
  await awaiting(run.run_id, 'review');
  await request('POST', `/v1/runs/${run.run_id}/cancel`, {});
  await keep('cancelled-in-waits', run.run_id);
}

function short(id: string, extra: object = {}) {
  return step(id, { dispatch: 'inline', ...extra });
}

/** The first call of a worker takes longest. */
async function warmUp({ submit, ended }: Recording): Promise<void> {
  await ended((await submit([short('first')])).run_id);
}

async function recordBatch(recording: Recording): Promise<void> {
  const { submit, keep } = recording;
  await warmUp(recording);
  const run = await submit([
    short('a'),
    short('b', { depends_on: ['a'] }),
    short('c', { depends_on: ['a'] }),
    short('each', { depends_on: ['b', 'c'], for_each: { items: [1, 2, 3] } }),
    short('end', { depends_on: ['each'] }),
  ]);
  await keep('batch', run.run_id);
}

async function recordSlowBatch(recording: Recording): Promise<void> {
  const { submit, keep, instance } = recording;
  await warmUp(recording);
  const slow = instance.execs.length + 2;
  instance.handle = (exec, response) =>
    void setTimeout(() => echo(exec, response), instance.execs.length === slow ? 600 : 0);
  const run = await submit([
    short('a'),
    short('b', { depends_on: ['a'] }),
    short('c', { depends_on: ['b'] }),
  ]);
  await keep('batch-slow', run.run_id);
  instance.handle = echo;
}

async function recordRetriedBatch(recording: Recording): Promise<void> {
  const { submit, keep, ended, instance } = recording;
  await warmUp(recording);
  let calls = 0;
  instance.handle = (exec, response) => {
    calls += 1;
    if (calls > 1) return echo(exec, response);
    answer(response, 500, { ok: false, error: 'broken' });
  };
  const run = await submit([
    short('a', { retry: { max: 1, initial: '1s' } }),
    short('b', { depends_on: ['a'] }),
  ]);
  await ended(run.run_id);
  await keep('batch-retried', run.run_id);
  instance.handle = echo;
}

async function recordInLine(recording: Recording): Promise<void> {
  const { submit, keep, ended, awaiting } = recording;
  const single = await startInstance(recording, { name: 'single', max_concurrency: 1 });
  const open: (() => void)[] = [];
  single.handle = (exec, response) => void open.push(() => echo(exec, response));
  const first = await submit([{ ...step('a'), capability: 'single' }]);
  await waitFor('its call to arrive', () => open.length === 1);
  const run = await submit([{ ...step('a'), capability: 'single' }]);
  await awaiting(run.run_id, 'slot');
  open.shift()?.();
  await waitFor('the next call to arrive', () => open.length === 1);
  open.shift()?.();
  await ended(first.run_id);
  await keep('in-line', run.run_id);
  await single.stop();
}

async function recordMovedOn(recording: Recording): Promise<void> {
  const { submit, keepAll, questionOf, request } = recording;
  const ids = Array.from({ length: 30 }, (_, at) => `s${at}`);
  const run = await submit([
    { id: 'ask', review: { title: 'Go on?' } },
    ...ids.map((id, at) => step(id, at === 0 ? {} : { depends_on: [ids[at - 1]] })),
    step('last', { depends_on: ['ask', 's29'] }),
  ]);
  await waitFor('the chain to end', async () => {
    const { body } = await request<Run>('GET', `/v1/runs/${run.run_id}`);
    return body.steps.find(({ id }) => id === 's29')?.state === 'succeeded';
  });
  const review: Review = await questionOf(run.run_id);
  await decide(recording, review, { action: 'output', output: {} });
  await keepAll('moved-on', run.run_id);
}

async function recordRerun(recording: Recording): Promise<void> {
  const { submit, keep, request, ended } = recording;
  const first = await submit([step('a'), step('b', { depends_on: ['a'] })]);
  await ended(first.run_id);
  const { body } = await request<Run>('POST', `/v1/runs/${first.run_id}/rerun`, { from: ['b'] });
  await keep('rerun', body.run_id);
}

export const engineRecorders: FeatureRecorders = {
  decided: recordDecided,
  continued: recordContinued,
  items: recordItems,
  'item-escalated': recordItemEscalated,
  waited: recordWaited,
  rounds: recordRounds,
  raced: recordRaced,
  asked: recordAsked,
  nested: recordNested,
  paused: recordPaused,
  raised: recordRaised,
  appeared: recordAppeared,
  'cancelled-in-waits': recordCancelledInWaits,
  batch: recordBatch,
  'batch-slow': recordSlowBatch,
  'in-line': recordInLine,
  'batch-retried': recordRetriedBatch,
  'moved-on': recordMovedOn,
  rerun: recordRerun,
};
