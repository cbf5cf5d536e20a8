import type { Escalation } from '@capstan/core/contracts/escalation';
import type { EventPage } from '@capstan/core/contracts/event';
import type { Review } from '@capstan/core/contracts/review';
import type { Run } from '@capstan/core/contracts/run';
import type { StepDetail } from '@capstan/core/contracts/run-step';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { answer, echo, type Handler, type Instance, startInstance } from '../support/fleet.ts';
import { isLong } from '../support/long.ts';
import { decide, reviewOf } from '../support/reviews.ts';
import { type SharedCapstan, shareCapstan } from '../support/shared-capstan.ts';
import { waitFor } from '../support/wait.ts';

let capstan: SharedCapstan;
let resample: Instance;
let free: Instance;

/** Takes whole rates only, which its schema does not state. */
const picky: Handler = (exec, response) =>
  Number.isInteger(exec.input.rate)
    ? echo(exec, response)
    : answer(response, 422, {
        ok: false,
        error: `rate must be a whole number of Hz, not ${exec.input.rate}`,
      });

beforeAll(async () => {
  capstan = await shareCapstan();
  resample = await startInstance(capstan, {
    name: 'rerate',
    input: { type: 'object', properties: { rate: {} }, required: ['rate'] },
  });
  free = await startInstance(capstan, { name: 'free' });
});
beforeEach(() => {
  resample.handle = picky;
  free.handle = echo;
});
afterAll(async () => {
  await Promise.all([resample?.stop(), free?.stop()]);
});

function bad(id: string, rate: string, extra: object = {}) {
  return {
    id,
    capability: 'rerate',
    input: { rate },
    ...extra,
  };
}

async function stepOf(runId: string, stepId: string): Promise<StepDetail> {
  return (await capstan.request<StepDetail>('GET', `/v1/runs/${runId}/steps/${stepId}`)).body;
}

async function eventsOf(runId: string, stepId: string): Promise<string[]> {
  const { body } = await capstan.request<EventPage>('GET', `/v1/runs/${runId}/events?limit=200`);
  return body.items.filter(({ step_id }) => step_id === stepId).map(({ type }) => type);
}

test('a person corrects a step and the run continues; the next run corrects itself and names the skill', async () => {
  const steps = [
    bad('convert', '44.1k'),
    { id: 'use', capability: 'free', input: { n: '{{ steps.convert.output.rate }}' } },
  ];
  const { run_id } = await capstan.submit(steps);
  const review = await reviewOf(capstan, run_id, 'convert');
  expect(review).toMatchObject({ kind: 'escalation', run_id, step_id: 'convert', state: 'open' });
  expect(review.payload).toMatchObject({ input: { rate: '44.1k' } });
  const waiting = (await capstan.request<Run>('GET', `/v1/runs/${run_id}`)).body;
  expect(waiting).toMatchObject({
    state: 'running',
    awaiting: ['review'],
    steps: [{ state: 'in_review', review_id: review.review_id }, { state: 'pending' }],
  });
  await decide(capstan, review, { action: 'edit', input: { rate: 44_100 } });
  const run = await capstan.ended(run_id);
  expect(run).toMatchObject({
    state: 'succeeded',
    output: { use: { n: 44_100 } },
    steps: [
      { state: 'succeeded', revision: 1, attempts: 2 },
      { state: 'succeeded', revision: 0 },
    ],
  });
  expect(run.awaiting).toBeUndefined();
  expect(run.steps[0]?.skill_id).toBeUndefined();
  expect(await stepOf(run_id, 'convert')).toMatchObject({
    input: { rate: '44.1k' },
    revisions: [{ revision: 1, input: { rate: 44_100 }, source: `review:${review.review_id}` }],
    output: { rate: 44_100 },
  });
  const told = await waitFor('the end of the step in the log', async () => {
    const events = await eventsOf(run_id, 'convert');
    return events.includes('step.succeeded') ? events : null;
  });
  expect(told).toContain('step.escalated');
  const people = told.filter((type) => /review/.test(type));
  expect(people).toEqual(['step.in_review', 'step.reviewed']);
  expect(told.filter((type) => /succeeded|failed|cancelled|skipped/.test(type))).toEqual(['step.succeeded']);

  const again = await capstan.submit(steps);
  const second = await capstan.ended(again.run_id);
  expect(second).toMatchObject({ state: 'succeeded', cost_usd: 0, output: { use: { n: 44_100 } } });
  const [convert] = second.steps;
  expect(convert).toMatchObject({ revision: 1, skill_id: expect.any(String) });
  expect(convert?.review_id).toBeUndefined();
  const { body: ladder } = await capstan.request<Escalation>(
    'GET',
    `/v1/escalations/${convert?.escalation_id}`,
  );
  expect(ladder).toMatchObject({ state: 'succeeded', skill_id: convert?.skill_id, cost_usd: 0 });
  const place = `/v1/runs/${second.run_id}/steps/${convert?.id}`;
  const { body: detail } = await capstan.request<StepDetail>('GET', place);
  const { escalation_history, escalation_advice } = ladder.payload;
  const { escalation_level } = ladder;
  const moves = [expect.objectContaining({ kind: 'executed', level: 0, outcome: 'succeeded', cost_usd: 0 })];
  expect(detail.escalation).toEqual({ escalation_level, escalation_history, escalation_advice, moves });
});

test.runIf(isLong)(
  'three reviews decided alike in two runs are enough: the next run repairs itself without a review',
  async () => {
    const input = {
      type: 'object',
      properties: { gain_db: { type: 'number' } },
      additionalProperties: false,
    };
    const gainer = await startInstance(capstan, { name: 'gainer', input });
    gainer.handle = echo;
    // An unknown schema refuses nothing.
    await waitFor('the worker to know the schema', async () => {
      const input = { gain_db: 'loud' };
      const { run_id } = await capstan.submit([
        { id: 'a', capability: 'gainer', input, escalate: { enabled: false } },
      ]);
      return (await capstan.ended(run_id)).state === 'failed';
    });
    const submit = (job: Readonly<Record<string, string>>) => {
      // One after the other: of two ladders with the same failure, one waits for the other.
      const steps = Object.keys(job).map((id, index, ids) => ({
        id,
        capability: 'gainer',
        input: { gain_db: `{{ job.${id} }}` },
        depends_on: ids.slice(Math.max(0, index - 1), index),
      }));
      return capstan.submit(steps, job);
    };
    const jobs: readonly Readonly<Record<string, string>>[] = [{ a: '-12 dB', b: '-9 dB' }, { a: '-6 dB' }];
    for (const job of jobs) {
      const { run_id } = await submit(job);
      for (const id of Object.keys(job))
        await decide(capstan, await reviewOf(capstan, run_id, id), { action: 'approve' });
      expect(await capstan.ended(run_id)).toMatchObject({ state: 'succeeded' });
    }
    const { run_id } = await submit({ a: '-3 dB' });
    expect(await capstan.ended(run_id)).toMatchObject({ state: 'succeeded', output: { a: { gain_db: -3 } } });
    const step = await stepOf(run_id, 'a');
    expect(step).toMatchObject({ as_decided: { by: [expect.any(String)], times: 3 }, revision: 1 });
    expect(step.review_id).toBeUndefined();
    await gainer.stop();
  },
);

test.runIf(isLong)(
  'other branches continue while one step is in review, and its dependents come after the decision',
  async () => {
    const { run_id } = await capstan.submit([
      bad('a', 'slow', { allow_output: true }),
      { id: 'b', capability: 'free', input: {} },
      { id: 'c', capability: 'free', depends_on: ['b'], input: {} },
      { id: 'd', capability: 'free', input: { n: '{{ steps.a.output.n }}' } },
    ]);
    const review = await reviewOf(capstan, run_id, 'a');
    await waitFor('the other branch to end', async () => {
      const { body } = await capstan.request<Run>('GET', `/v1/runs/${run_id}`);
      return body.steps[2]?.state === 'succeeded';
    });
    const { body } = await capstan.request<Run>('GET', `/v1/runs/${run_id}`);
    expect(body.steps.map(({ state }) => state)).toEqual(['in_review', 'succeeded', 'succeeded', 'pending']);
    await decide(capstan, review, { action: 'output', output: { n: 7 } });
    expect(await capstan.ended(run_id)).toMatchObject({ state: 'succeeded', output: { d: { n: 7 } } });
  },
);

test('a cancel ends a step in review, its review and its escalation', async () => {
  const { run_id } = await capstan.submit([bad('a', 'never'), { ...bad('b', 'x'), depends_on: ['a'] }]);
  const { review_id, escalation_id } = await reviewOf(capstan, run_id, 'a');
  await capstan.request('POST', `/v1/runs/${run_id}/cancel`, {});
  expect(await capstan.ended(run_id)).toMatchObject({
    state: 'cancelled',
    steps: [{ state: 'cancelled' }, { state: 'cancelled' }],
  });
  const states = await waitFor('what is left to be closed', async () => {
    const review = (await capstan.request<Review>('GET', `/v1/reviews/${review_id}`)).body.state;
    const ladder = (await capstan.request<Escalation>('GET', `/v1/escalations/${escalation_id}`)).body.state;
    return review !== 'open' && ladder !== 'in_review' && [review, ladder];
  });
  expect(states).toEqual(['cancelled', 'cancelled']);
});

test.runIf(isLong)(
  'a rejected step fails its run with the reason, and the other review is not waited for',
  async () => {
    const { run_id } = await capstan.submit([bad('a', 'p'), bad('b', 'q')]);
    const [review, other] = [await reviewOf(capstan, run_id, 'a'), await reviewOf(capstan, run_id, 'b')];
    await decide(capstan, review, { action: 'reject', note: 'not this one' });
    expect(await capstan.ended(run_id)).toMatchObject({
      state: 'failed',
      error: { code: 'step_failed', details: { step_id: 'a', code: 'review_rejected' } },
      steps: [
        {
          state: 'failed',
          error: { code: 'review_rejected', message: expect.stringContaining('not this one') },
        },
        { state: 'failed' },
      ],
    });
    await waitFor('the other review to be closed', async () => {
      const { body } = await capstan.request<Review>('GET', `/v1/reviews/${other.review_id}`);
      return body.state === 'cancelled';
    });
  },
);
