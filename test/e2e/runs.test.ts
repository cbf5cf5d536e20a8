import type { StepDetail } from '@capstan/core/contracts/run-step';
import { afterAll, beforeAll, describe, expect, inject, it, test } from 'vitest';
import { answer, echo, type Handler, type Instance, startInstance } from '../support/fleet.ts';
import { isLong } from '../support/long.ts';
import { type SharedCapstan, shareCapstan } from '../support/shared-capstan.ts';
import { waitFor } from '../support/wait.ts';

let capstan: SharedCapstan;
let worker: Instance;
const others: Instance[] = [];

async function anInstance(name: string, handle: Handler): Promise<Instance> {
  const instance = await startInstance(capstan, { name });
  others.push(instance);
  return Object.assign(instance, { handle });
}

beforeAll(async () => {
  capstan = await shareCapstan();
  worker = await startInstance(capstan, { name: 'echo' });
});
afterAll(async () => {
  await Promise.all([worker, ...others].map((instance) => instance?.stop()));
});

test('a chain passes outputs on and the run has an output', async () => {
  worker.handle = echo;
  const { run_id } = await capstan.submit(
    [
      { id: 'a', capability: 'echo', input: { n: '{{ job.n }}', text: 'n is {{ job.n }}' } },
      { id: 'b', capability: 'echo', input: { all: '{{ steps.a.output }}' } },
    ],
    { n: 7 },
    { output: { result: '{{ steps.b.output.all.n }}' } },
  );
  const run = await capstan.ended(run_id);
  expect(run).toMatchObject({ state: 'succeeded', output: { result: 7 }, cost_usd: 0 });
  const { body } = await capstan.request<StepDetail>('GET', `/v1/runs/${run_id}/steps/b`);
  expect(body).toMatchObject({
    state: 'succeeded',
    input: { all: { n: 7, text: 'n is 7' } },
    output: { all: { n: 7, text: 'n is 7' } },
    attempts: [{ state: 'settled', ambiguity: 'answered', decision: { chosen: worker.endpoint } }],
  });
});

test('the worker runs the bundle that WORKFLOW_BUNDLE names', async () => {
  worker.handle = echo;
  const { run_id } = await capstan.submit([{ id: 'a', capability: 'echo', input: {} }]);
  expect(await capstan.ended(run_id)).toMatchObject({ state: 'succeeded' });
  expect(await capstan.logs()).toContain(`"workflow_bundle":${JSON.stringify(inject('workflowBundle'))}`);
});

test('steps without mutual dependency run in parallel', async () => {
  const waiting: (() => void)[] = [];
  worker.handle = async (exec, response) => {
    await new Promise<void>((resolve) => {
      waiting.push(resolve);
      if (waiting.length === 3) for (const release of waiting) release();
    });
    answer(response, 200, exec.input);
  };
  const { run_id } = await capstan.submit(
    ['a', 'b', 'c'].map((id) => ({ id, capability: 'echo', input: { id } })),
  );
  expect(await capstan.ended(run_id)).toMatchObject({ state: 'succeeded' });
});

/** They wait for heartbeats, which bring the cancel: so they wait together, each with an instance of its own. */
describe.concurrent('a running step', () => {
  it('a step is cancelled while its capability works on, which sees its connection closed', async () => {
    const { execs } = await anInstance('long', () => undefined);
    const { run_id } = await capstan.submit([
      { id: 'a', capability: 'long', input: {} },
      { id: 'b', capability: 'long', depends_on: ['a'], input: {} },
    ]);
    const exec = await waitFor('the call to arrive', () => execs[0]);
    const { status } = await capstan.request('POST', `/v1/runs/${run_id}/cancel`, { reason: 'not needed' });
    expect(status).toBe(202);
    const run = await capstan.ended(run_id);
    expect(run).toMatchObject({
      state: 'cancelled',
      steps: [{ state: 'cancelled' }, { state: 'cancelled' }],
    });
    await waitFor('the connection to close', () => exec.closed);
  });

  it('a cancel reaches a step that started after another one', async () => {
    const { execs } = await anInstance('second', (exec, response) => {
      if (exec.input.first === true) answer(response, 200, {});
    });
    const { run_id } = await capstan.submit([
      { id: 'a', capability: 'second', input: { first: true } },
      { id: 'b', capability: 'second', depends_on: ['a'], input: {} },
    ]);
    const second = await waitFor('the second call', () => execs[1]);
    await capstan.request('POST', `/v1/runs/${run_id}/cancel`, {});
    expect(await capstan.ended(run_id)).toMatchObject({
      state: 'cancelled',
      steps: [{ state: 'succeeded' }, { state: 'cancelled' }],
    });
    await waitFor('the connection to close', () => second.closed);
  });
});

test('the event log lists the run in order, as pages and as a stream', async () => {
  worker.handle = echo;
  const { run_id } = await capstan.submit([{ id: 'a', capability: 'echo', input: {} }]);
  const items = await capstan.logOf(run_id);
  expect(items.map(({ seq, type }) => [seq, type])).toEqual([
    [1, 'run.queued'],
    [2, 'run.started'],
    [3, 'step.started'],
    [4, 'step.routed'],
    [5, 'step.succeeded'],
    [6, 'run.succeeded'],
  ]);
  const stream = await capstan.request<string>('GET', `/v1/runs/${run_id}/events`, undefined, {
    accept: 'text/event-stream',
    'last-event-id': '4',
  });
  expect(stream.body.match(/^event: .*$/gm)).toEqual(['event: step.succeeded', 'event: run.succeeded']);
});

test('a stream that is resumed after the last event ends at once', async () => {
  worker.handle = echo;
  const { run_id } = await capstan.submit([{ id: 'a', capability: 'echo', input: {} }]);
  await capstan.ended(run_id);
  const headers = { accept: 'text/event-stream', 'last-event-id': '6' };
  const { body } = await capstan.request<string>('GET', `/v1/runs/${run_id}/events`, undefined, headers);
  expect(body).not.toContain('event:');
});

test('a run that Temporal could not carry is refused at submission', async () => {
  const id = (n: number) => `step_${String(n).padStart(59, '0')}`;
  const steps = Array.from({ length: 7_999 }, (_, n) => ({
    id: id(n),
    capability: `${'c'.repeat(120)}`,
    ...(n === 0 ? {} : { depends_on: [id(n - 1)] }),
  }));
  const definition = { pipeline: 'large', version: '1', steps };
  const { status, body } = await capstan.request<{ code: string }>('POST', '/v1/runs', { definition });
  expect([status, body.code]).toEqual([422, 'definition_invalid']);
});

test.runIf(isLong)('a chain of 100 steps completes', async () => {
  worker.handle = echo;
  const steps = Array.from({ length: 100 }, (_, n) => ({
    id: `s${n}`,
    capability: 'echo',
    input: n === 0 ? { n: 0 } : { n: `{{ steps.s${n - 1}.output.n }}` },
  }));
  const { run_id } = await capstan.submit(steps);
  expect(await capstan.ended(run_id, 60_000)).toMatchObject({
    state: 'succeeded',
    output: { s99: { n: 0 } },
  });
});
