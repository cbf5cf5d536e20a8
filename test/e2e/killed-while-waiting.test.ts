/**
 * Runs that wait for something while server and worker are killed -9, one for each thing there is to wait for. It comes
 * while no worker exists, or when all are back: either way the run continues.
 */

import type { Json } from '@capstan/core/contracts/primitives';
import type { Problem } from '@capstan/core/contracts/problem';
import type { Review } from '@capstan/core/contracts/review';
import type { Run } from '@capstan/core/contracts/run';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { answer, type Instance, startInstance } from '../support/fleet.ts';
import { findLeftovers } from '../support/leftovers.ts';
import { decide } from '../support/reviews.ts';
import { useMortalCapstan } from '../support/shared-capstan.ts';
import { waitFor } from '../support/wait.ts';

type When = 'no worker' | 'all back';

interface Waiting {
  readonly awaiting: 'review' | 'budget' | 'capability' | 'run' | 'time' | 'pause' | 'event';
  readonly extra?: object;
  /** @param who of the run, unique */
  readonly steps: (who: string) => readonly object[];
  /** Brings the run to its place, where a submission is not enough. */
  readonly settle?: (runId: string, who: string) => Promise<unknown>;
  /** What it waits for. */
  readonly come: (runId: string, who: string) => Promise<unknown>;
  readonly output: (who: string) => Json;
  readonly costUsd?: number;
}

const capstan = useMortalCapstan();
let db: Db;
const instances: Instance[] = [];
const free = new Set<string>();
const held: { readonly who: string; readonly answer: () => void }[] = [];

async function release(who: string): Promise<void> {
  free.add(who);
  for (const call of held) if (call.who === who) call.answer();
}

async function post(path: string, body: object): Promise<void> {
  const { status, body: answered } = await capstan.request<Problem>('POST', path, body);
  if (status >= 300) throw new Error(`POST ${path}: ${status} ${JSON.stringify(answered)}`);
}

function stepSucceeds(run_id: string, step_id: string): Promise<unknown> {
  return waitFor(`step ${step_id} of ${run_id} to succeed`, () =>
    db('step').where({ run_id, step_id, state: 'succeeded' }).first(),
  );
}

function heldCall(id: string, who: string) {
  return { id, capability: 'held', input: { who } };
}
function after(id: string, value: string) {
  return {
    id: 'after',
    capability: 'echo',
    depends_on: [id],
    input: { v: value },
  };
}
function fixed(id: string) {
  return after(id, 'went on');
}
function wentOn() {
  return { after: { v: 'went on' } };
}

const cases: readonly Waiting[] = [
  {
    awaiting: 'review',
    steps: () => [
      { id: 'ask', review: { title: 'Which take?' } },
      after('ask', '{{ steps.ask.output.take }}'),
    ],
    come: async (runId) => {
      const open = await capstan.request<{ items: Review[] }>(
        'GET',
        `/v1/reviews?run_id=${runId}&state=open`,
      );
      await decide(capstan, open.body.items[0] as Review, { action: 'output', output: { take: 7 } });
    },
    output: () => ({ after: { v: 7 } }),
  },
  {
    awaiting: 'budget',
    extra: { budget_ceiling_usd: 0.5 },
    steps: () => [
      { id: 'first', capability: 'paid', input: {} },
      { id: 'second', capability: 'paid', depends_on: ['first'], input: {} },
      fixed('second'),
    ],
    come: (runId) => post(`/v1/runs/${runId}/budget`, { budget_ceiling_usd: 5 }),
    output: wentOn,
    costUsd: 1,
  },
  {
    awaiting: 'capability',
    steps: (who) => [{ id: 'late', capability: who, wait_for_capability: '10m', input: {} }, fixed('late')],
    come: async (_, who) => void instances.push(await startInstance(capstan, { name: who })),
    output: wentOn,
  },
  {
    awaiting: 'run',
    steps: (who) => [
      { id: 'sub', pipeline: 'held-sub@1', input: { who } },
      after('sub', '{{ steps.sub.output.held.who }}'),
    ],
    settle: (_, who) => waitFor('the call of the sub-run', () => held.some((call) => call.who === who)),
    come: (_, who) => release(who),
    output: (who) => ({ after: { v: who } }),
  },
  {
    awaiting: 'pause',
    steps: (who) => [heldCall('first', who), fixed('first')],
    settle: async (runId, who) => {
      await waitFor('the first call', () => held.some((call) => call.who === who));
      await post(`/v1/runs/${runId}/pause`, {});
      await release(who);
      await stepSucceeds(runId, 'first');
    },
    come: (runId) => post(`/v1/runs/${runId}/resume`, {}),
    output: wentOn,
  },
  {
    awaiting: 'event',
    steps: (who) => [
      { id: 'paid', event: { name: 'paid', key: who } },
      after('paid', '{{ steps.paid.output.sum }}'),
    ],
    come: (_, who) => post('/v1/events/paid', { key: who, payload: { sum: 12 } }),
    output: () => ({ after: { v: 12 } }),
  },
  {
    awaiting: 'time',
    steps: () => [{ id: 'pause', wait: '15s' }, fixed('pause')],
    come: async () => undefined, // it passes
    output: wentOn,
  },
  {
    awaiting: 'time',
    steps: () => [
      {
        id: 'poll',
        capability: 'paid',
        input: { n: '{{ round.index }}' },
        repeat: { until: 'round.output.n == 1', max: 5, pause: '15s' },
      },
      fixed('poll'),
    ],
    come: async () => undefined, // the pause between two rounds passes
    output: wentOn,
    costUsd: 1,
  },
];

beforeAll(async () => {
  db = connectDatabase(capstan.databaseUrl, 2);
  const [echo, paid, holder] = await Promise.all([
    startInstance(capstan, { name: 'echo' }),
    startInstance(capstan, { name: 'paid', cost_model: { type: 'per_call', rate_usd: 0.5 } }),
    startInstance(capstan, { name: 'held' }),
  ]);
  holder.handle = (exec, response) => {
    const who = String(exec.input.who);
    const end = () => answer(response, 200, { ok: true, output: { who } });
    if (free.has(who)) end();
    else held.push({ who, answer: end });
  };
  instances.push(echo, paid, holder);
  const steps = [{ id: 'held', capability: 'held', input: { who: '{{ job.who }}' } }];
  await post('/v1/pipelines', { pipeline: 'held-sub', version: '1', steps });
}, 240_000);
afterAll(async () => {
  await Promise.all(instances.map((instance) => instance.stop()));
  await db?.destroy();
});

/** Of these runs: those that wait, and those that are paused. */
async function countWaiting(runIds: readonly string[]): Promise<number> {
  const steps = await db('step')
    .whereIn('run_id', runIds)
    .where({ state: 'waiting' })
    .countDistinct('run_id as runs');
  const [paused] = await db('run').whereIn('run_id', runIds).where({ state: 'paused' }).count('* as runs');
  return Number(steps[0]?.runs) + Number(paused?.runs);
}

async function bringToPlace(one: Waiting, when: When) {
  const who = `${one.awaiting}-${when.replace(' ', '-')}`;
  const { run_id } = await capstan.submit(one.steps(who), {}, one.extra);
  await one.settle?.(run_id, who);
  return { one, when, who, runId: run_id };
}

test('a wait may end after all processes were killed, with or without a worker: the run continues', async () => {
  const waiting = await Promise.all(
    (['no worker', 'all back'] as const).flatMap((when) => cases.map((one) => bringToPlace(one, when))),
  );
  const runIds = waiting.map(({ runId }) => runId);
  await waitFor('all to wait', async () => (await countWaiting(runIds)) === waiting.length, 120_000);
  const seen = await Promise.all(runIds.map((id) => capstan.request<Run>('GET', `/v1/runs/${id}`)));
  expect(seen.map(({ body }) => body.awaiting?.[0] ?? (body.state === 'paused' ? 'pause' : null))).toEqual(
    waiting.map(({ one }) => one.awaiting),
  );
  const comeTo = (wanted: When): Promise<unknown> =>
    Promise.all(waiting.map(({ one, when, runId, who }) => (when === wanted ? one.come(runId, who) : null)));

  await Promise.all([capstan.killWorker('SIGKILL'), capstan.killServer('SIGKILL')]);
  await capstan.startServer();
  await comeTo('no worker');
  await capstan.startWorker();
  await comeTo('all back');

  for (const { one, who, runId } of waiting) {
    const { state, output, error, cost_usd } = await capstan.ended(runId, 120_000);
    const wanted = { state: 'succeeded', output: one.output(who), cost_usd: one.costUsd ?? 0 };
    expect({ who, state, output, error, cost_usd }).toEqual({ who, ...wanted });
  }
  const echoed = instances[0]?.execs.map(({ headers }) => headers['idempotency-key']) ?? [];
  expect(echoed).toHaveLength(waiting.length);
  await waitFor('nothing to be left', async () => (await findLeftovers(db)).length === 0, 60_000).catch(
    async () => expect(await findLeftovers(db)).toEqual([]),
  );
}, 300_000);
