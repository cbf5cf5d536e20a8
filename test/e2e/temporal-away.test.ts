/** What is accepted while Temporal does not answer, and done when it is back: the way to it is cut for real. */

import type { Review } from '@capstan/core/contracts/review';
import type { Run } from '@capstan/core/contracts/run';
import type { Schedule } from '@capstan/core/contracts/schedule';
import { ladderWorkflowId, runWorkflowId } from '@capstan/core/workflow-names';
import { tsToMs } from '@temporalio/common/lib/time.js';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type Capstan, startCapstan } from '../support/capstan.ts';
import { answer, echo, type Instance, startInstance } from '../support/fleet.ts';
import { isLong } from '../support/long.ts';
import { readShown, startModelLevels } from '../support/model-levels.ts';
import { startModelServer } from '../support/model-server.ts';
import { decide, reviewOf } from '../support/reviews.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { connectTestEnvironment } from '../support/temporal.ts';
import { waitFor } from '../support/wait.ts';

let capstan: Capstan;
let temporal: TcpProxy;
let resample: Instance;

beforeAll(async () => {
  temporal = await startTcpProxy(inject('temporalAddress'));
  capstan = await startCapstan({ TEMPORAL_ADDRESS: temporal.address, HEARTBEAT_TIMEOUT_MS: '3000' });
  resample = await startInstance(capstan, { name: 'resample' });
  resample.handle = ({ input }, response) =>
    typeof input.rate === 'number'
      ? answer(response, 200, { ok: true, output: input })
      : answer(response, 422, { ok: false, error: 'rate must be a number' });
  const steps = [{ id: 'a', capability: 'resample', input: { rate: '{{ job.rate }}' } }];
  await capstan.request('POST', '/v1/pipelines', { pipeline: 'nightly', version: '1', steps });
});
afterAll(async () => {
  await resample?.stop();
  await capstan?.stop();
  await temporal?.cut();
});

/** It tries again by itself until it gets through; after its death maintenance of the next one does. */
async function restartServer(): Promise<void> {
  await capstan.killServer('SIGKILL');
  await temporal.restore();
  await capstan.startServer();
}

const comebacks: readonly (readonly [string, () => Promise<void>])[] = [
  ['by the server that took it', () => temporal.restore()],
  ['although that server was killed', restartServer],
];

test.each(comebacks.slice(0, isLong ? 2 : 1))(
  'a decision is stored, and the run continues by it when Temporal is back, %s',
  async (_, comeBack) => {
    const steps = [{ id: 'convert', capability: 'resample', input: { rate: '44.1k' } }];
    const { run_id } = await capstan.submit(steps);
    const review = await reviewOf(capstan, run_id, 'convert');
    await temporal.cut();
    await decide(capstan, review, { action: 'edit', input: { rate: 44_100 }, remember: false });
    const path = `/v1/reviews/${review.review_id}`;
    const { body: decided } = await capstan.request<Review>('GET', path);
    expect(decided).toMatchObject({ state: 'resolved', decision: { action: 'edit' } });
    expect(decided.delivered_at).toBeUndefined();
    const { body: waiting } = await capstan.request<Run>('GET', `/v1/runs/${run_id}`);
    expect(waiting.steps[0]?.state).toBe('in_review');
    await comeBack();
    expect(await capstan.ended(run_id)).toMatchObject({
      state: 'succeeded',
      output: { convert: { rate: 44_100 } },
    });
    expect((await capstan.request<Review>('GET', path)).body.delivered_at).toEqual(expect.any(String));
  },
);

test.runIf(isLong)(
  'a server that starts without Temporal takes runs, which begin when it answers',
  async () => {
    await temporal.cut();
    await capstan.killServer('SIGKILL');
    await capstan.startServer();
    const { status, body } = await capstan.request('GET', '/readyz');
    expect([status, body]).toMatchObject([200, { detail: { temporal: 'does not answer' } }]);
    await waitFor('the warning', () => capstan.logs().includes('Temporal does not answer: runs are taken'));
    const { run_id } = await capstan.submit([{ id: 'a', capability: 'resample', input: { rate: 7 } }]);
    await temporal.restore();
    expect(await capstan.ended(run_id)).toMatchObject({ state: 'succeeded', output: { a: { rate: 7 } } });
  },
);

/** The only activity of a workflow, as Temporal sees it past the proxy. */
async function activityOf({ client }: TestWorkflowEnvironment, workflowId: string) {
  const { raw } = await client.workflow.getHandle(workflowId).describe();
  return raw.pendingActivities?.[0];
}

/** Cuts the way to Temporal until it has given the activity up, and restores it until it has given it out once more. */
async function outlastHeartbeats(direct: TestWorkflowEnvironment, workflowId: string): Promise<void> {
  await temporal.cut();
  await waitFor('Temporal to give it up', async () => {
    const activity = await activityOf(direct, workflowId);
    return (activity?.attempt ?? 1) > 1;
  });
  await temporal.restore();
  await waitFor('it to come again', async () => {
    const {
      lastHeartbeatTime: heard,
      lastStartedTime: started,
      attempt,
    } = (await activityOf(direct, workflowId)) ?? {};
    return (attempt ?? 1) > 1 && heard != null && started != null && tsToMs(heard) > tsToMs(started);
  });
}

const retries: readonly (readonly [string, object])[] = [
  [', also where it must not be sent twice', { retry: { max: 0 } }],
  ['', {}],
];

test.each(retries.slice(0, isLong ? 2 : 1))(
  'a call outlives an outage that is longer than its heartbeats last: it is neither cut nor sent again%s',
  async (_, settings) => {
    const render = await startInstance(capstan, {
      name: 'render',
      cost_model: { type: 'per_call', rate_usd: 0.5 },
    });
    const answers: (() => void)[] = [];
    render.handle = (exec, response) => void answers.push(() => void echo(exec, response));
    const direct = await connectTestEnvironment();
    const run = await capstan.submit([{ id: 'a', capability: 'render', input: { n: 1 }, ...settings }]);
    await waitFor('the call', () => answers.length > 0);
    await outlastHeartbeats(direct, runWorkflowId(run));
    for (const tell of answers) tell();
    expect(await capstan.ended(run.run_id)).toMatchObject({ state: 'succeeded', cost_usd: 0.5 });
    expect(render.execs).toMatchObject([{ answered: true, closed: false }]);
    await render.stop();
    await direct.teardown();
  },
);

test.runIf(isLong)(
  'a model that a ladder has asked outlives the outage too: it is asked once, and paid once',
  async () => {
    const provider = await startModelServer();
    const models = await startModelLevels(capstan, provider, { fast: 0.01 });
    const answers: (() => void)[] = [];
    provider.answer(({ body }) => {
      const advice = { instructions: 'say 44100', reasoning: 'it is a word', suggested_executor_level: 1 };
      const patch = [{ op: 'replace', path: '/rate', value: 44_100 }];
      if (readShown(body).kind !== 'advise') return { text: JSON.stringify({ patch, used_skills: [] }) };
      return new Promise((resolve) => void answers.push(() => resolve({ text: JSON.stringify(advice) })));
    });
    const direct = await connectTestEnvironment();
    const run = await capstan.submit([{ id: 'a', capability: 'resample', input: { rate: 'forty-four' } }]);
    await waitFor('the question', () => answers.length > 0);
    await outlastHeartbeats(direct, ladderWorkflowId(run, { step_id: 'a', item: 0, round: 1 }));
    for (const tell of answers) tell();
    expect(await capstan.ended(run.run_id)).toMatchObject({ state: 'succeeded', cost_usd: 0.02 });
    expect(answers).toHaveLength(1);
    expect(provider.requests.filter(({ isAborted }) => isAborted)).toEqual([]);
    await Promise.all([models.stop(), provider.close(), direct.teardown()]);
  },
);

test.runIf(isLong)('a schedule is accepted, and works when Temporal is back', async () => {
  await temporal.cut();
  // At a time that does not come during a test.
  const asked = { name: 'later', pipeline: 'nightly', cron: '0 0 29 2 *', job: { rate: 7 } };
  const { status, body: schedule } = await capstan.request<Schedule>('POST', '/v1/schedules', asked);
  expect([status, schedule]).toMatchObject([201, { delivered: false, next_at: [] }]);
  const path = `/v1/schedules/${schedule.schedule_id}`;
  const trigger = async () => (await capstan.request('POST', `${path}/trigger`)).status;
  expect(await trigger()).toBe(503);
  await temporal.restore();
  const shown = await waitFor('the delivery', async () => {
    const { body } = await capstan.request<Schedule>('GET', path);
    return body.delivered && body.next_at.length > 0 ? body : undefined;
  });
  expect(shown.next_at.every((at) => at.slice(4, 16) === '-02-29T00:00')).toBe(true);
  const before = resample.execs.length;
  await waitFor('a start', async () => (await trigger()) === 202);
  await waitFor('its call', () => resample.execs.length > before);
});
