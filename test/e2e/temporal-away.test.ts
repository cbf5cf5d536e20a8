/** What is accepted while Temporal does not answer, and done when it is back: the way to it is cut for real. */
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { Review } from '../../src/contracts/review.ts';
import type { Run } from '../../src/contracts/run.ts';
import type { Schedule } from '../../src/contracts/schedule.ts';
import { type Capstan, startCapstan } from '../support/capstan.ts';
import { answer, type Instance, startInstance } from '../support/fleet.ts';
import { decide, reviewOf } from '../support/reviews.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { waitFor } from '../support/wait.ts';

let capstan: Capstan;
let temporal: TcpProxy;
let resample: Instance;

beforeAll(async () => {
  temporal = await startTcpProxy(inject('temporalAddress'));
  capstan = await startCapstan({ TEMPORAL_ADDRESS: temporal.address });
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

test.each([
  ['by the server that took it', () => temporal.restore()],
  ['although that server was killed', restartServer],
])(
  'a decision is stored, and the run goes on by it when Temporal is back, %s',
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
  90_000,
);

test('a schedule is taken, and works when Temporal is back', async () => {
  await temporal.cut();
  // At a time that does not come during a test.
  const asked = { name: 'later', pipeline: 'nightly', cron: '0 0 29 2 *', job: { rate: 7 } };
  const { status, body: schedule } = await capstan.request<Schedule>('POST', '/v1/schedules', asked);
  expect([status, schedule]).toMatchObject([201, { delivered: false, next_at: [] }]);
  const path = `/v1/schedules/${schedule.schedule_id}`;
  const trigger = async () => (await capstan.request('POST', `${path}/trigger`)).status;
  expect(await trigger()).toBe(503);
  await temporal.restore();
  const shown = await waitFor(
    'the delivery',
    async () => {
      const { body } = await capstan.request<Schedule>('GET', path);
      return body.delivered && body.next_at.length > 0 ? body : undefined;
    },
    30_000,
  );
  expect(shown.next_at.every((at) => at.slice(4, 16) === '-02-29T00:00')).toBe(true);
  const before = resample.execs.length;
  await waitFor('a start', async () => (await trigger()) === 202, 30_000);
  await waitFor('its call', () => resample.execs.length > before);
}, 90_000);
