/**
 * Batches of short steps while their workers are killed -9, or stopped, again and again. KILLS sets how often; `npm run
 * faults -- inline` does it 20 times and prints the figures.
 */

import type { Plan } from '@capstan/core/contracts/plan';
import type { StepDetail } from '@capstan/core/contracts/run-step';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { type AddedWorker, type Capstan, startCapstan } from '../support/capstan.ts';
import { watchCommits } from '../support/commit-watch.ts';
import { echo, type Instance, startInstance } from '../support/fleet.ts';
import { findViolations } from '../support/invariants.ts';
import { findLeftovers } from '../support/leftovers.ts';
import { addUp, countLost, findRepeats, type ShortRun, short, shortRun } from '../support/short-load.ts';
import { waitFor } from '../support/wait.ts';

const kills = Number(process.env.KILLS ?? 2);
const runsPerKill = 8;

let capstan: Capstan;
let db: Db;
let instance: Instance;
let brief: Instance;
beforeAll(async () => {
  capstan = await startCapstan({
    HEARTBEAT_TIMEOUT_MS: '2000',
    SHUTDOWN_GRACE_MS: '5000',
    LEASE_MS: '3000',
  });
  db = connectDatabase(capstan.databaseUrl, 2);
  await watchCommits(db);
  const cost_model = { type: 'per_call', rate_usd: 0.5 };
  instance = await startInstance(capstan, { name: 'work', cost_model });
  brief = await startInstance(capstan, { name: short, cost_model, max_concurrency: 200 });
});
afterAll(async () => {
  await instance?.stop();
  await brief?.stop();
  await db?.destroy();
  await capstan?.stop();
});

test('worker killed -9 in a batch: ended calls are kept, running ones are sent again when their lease has expired', async () => {
  instance.handle = (exec, response) => void (exec.input.id === 'b' || echo(exec, response));
  const steps = ['a', 'b', 'c'].map((id, at, ids) => ({
    id,
    capability: 'work',
    dispatch: 'inline',
    input: { id, before: at === 0 ? null : `{{ steps.${ids[at - 1]}.output.id }}` },
  }));
  const { run_id } = await capstan.submit(steps);
  const lost = await waitFor('the call to arrive', () =>
    instance.execs.find(({ input }) => input.id === 'b'),
  );
  await capstan.killWorker('SIGKILL');
  await waitFor('the connection to close', () => lost.closed);
  instance.handle = echo;
  await capstan.startWorker();
  const run = await capstan.ended(run_id, 60_000);
  expect(run).toMatchObject({ state: 'succeeded', output: { c: { before: 'b' } }, cost_usd: 2 });
  expect(instance.execs.map(({ input }) => input.id)).toEqual(['a', 'b', 'b', 'c']);
  const { body } = await capstan.request<StepDetail>('GET', `/v1/runs/${run_id}/steps/b`);
  expect(body.attempts).toMatchObject([{ state: 'lost', certainty: 'estimated' }, { state: 'settled' }]);
  const keys = instance.execs.map(({ headers }) => headers['idempotency-key']);
  expect(keys[1]).toBe(keys[2]);
});

test('a run terminated in a batch: its calls are ended although no caller is left', async () => {
  instance.handle = () => undefined;
  const before = instance.execs.length;
  const steps = ['a', 'b', 'c'].map((id) => ({ id, capability: 'work', dispatch: 'inline', input: {} }));
  const { run_id } = await capstan.submit(steps);
  await waitFor('the calls to arrive', () => instance.execs.length === before + steps.length);
  await capstan.request('POST', `/v1/runs/${run_id}/cancel`, { mode: 'terminate' });
  expect(await capstan.ended(run_id)).toMatchObject({ state: 'cancelled' });
  await waitFor('the calls to be closed', () => instance.execs.slice(before).every(({ closed }) => closed));
  await waitFor('nothing to be left', async () => (await findLeftovers(db)).length === 0);
});

interface StartedRun extends ShortRun {
  readonly runId: string;
}

/** The server believes that calls are short, however slow the machine of the test is. */
async function untilShort(): Promise<void> {
  const known = { duration_ms: 5, deviation_ms: 1, success_count: 50, failure_count: 0 };
  const definition = { pipeline: 'p', version: '1', steps: [{ id: 'a', capability: short }] };
  await waitFor('the capability to be short', async () => {
    await db('instance').where({ name: short }).update(known); // a worker may write what it has seen over it
    const { body } = await capstan.request<Plan>('POST', '/v1/plan', { definition });
    return body.steps[0]?.dispatch?.code === 'short';
  });
}

async function submit(count: number): Promise<StartedRun[]> {
  await untilShort();
  return Promise.all(
    Array.from({ length: count }, async (_, n) => {
      const run = shortRun(n);
      const { run_id, dispatch } = await capstan.submit(run.steps, run.job);
      expect(dispatch?.map(({ code }) => code) ?? ['short']).toEqual(['short']);
      return { ...run, runId: run_id };
    }),
  );
}

/** Until then the runs are in the middle of something. */
function callsReach(count: number): Promise<unknown> {
  return waitFor(`${count} calls`, () => brief.execs.length >= count, 60_000);
}

/** Each run has its right output, each result one call and one charge, and nothing is left. */
async function check(runs: readonly StartedRun[]): Promise<void> {
  for (const { runId, output } of runs) {
    const run = await capstan.ended(runId, 120_000);
    const seen = { state: run.state, output: run.output, error: run.error };
    expect(seen, runId).toEqual({ state: 'succeeded', output });
  }
  await waitFor('nothing to be left', async () => (await findLeftovers(db)).length === 0).catch(async () =>
    expect(await findLeftovers(db)).toEqual([]),
  );
  expect(await findRepeats(db, brief)).toEqual([]);
  expect(await findViolations(db, [])).toEqual([]);
  expect(capstan.logs()).not.toMatch(/TMPRL1100|nondeterminism/i);
}

/** So many more calls are made before a worker dies. */
const further = [5, 60, 20, 120];

test(
  `a worker killed ${kills} times under short steps: what was lost is sent again, and nothing else`,
  async () => {
    brief.handle = addUp(400);
    const runs: StartedRun[] = [];
    for (let kill = 0; kill < kills; kill++) {
      const before = brief.execs.length;
      runs.push(...(await submit(runsPerKill)));
      await callsReach(before + (further[kill % further.length] as number));
      await capstan.killWorker('SIGKILL');
      await capstan.startWorker();
    }
    await check(runs);
    const figures = { kills, runs: runs.length, calls: brief.execs.length, lost: await countLost(db) };
    if (process.env.KILLS !== undefined) console.log(JSON.stringify(figures));
  },
  90_000 + kills * 20_000,
);

test(
  'workers replaced one by one under short steps of which some turn slow: nothing is called twice but what was lost',
  async () => {
    brief.handle = addUp(600);
    const [begun] = (await db.raw<{ rows: [{ at: Date }] }>('select clock_timestamp() as at')).rows;
    const callsBefore = brief.execs.length;
    const runs: StartedRun[] = [];
    let workers: Pick<AddedWorker, 'kill'>[] = [{ kill: capstan.killWorker }, await capstan.addWorker()];
    for (let round = 0; round < kills; round++) {
      const before = brief.execs.length;
      runs.push(...(await submit(runsPerKill)));
      await callsReach(before + (further[round % further.length] as number));
      const [oldest, ...others] = workers;
      const [added] = await Promise.all([capstan.addWorker(), oldest?.kill('SIGTERM')]);
      workers = [...others, added];
    }
    await check(runs);
    const keys = brief.execs.slice(callsBefore).map(({ headers }) => headers['idempotency-key']);
    const repeated = keys.length - new Set(keys).size;
    const since = db('attempt').where({ state: 'lost' }).where('started_at', '>=', begun.at);
    const lost = await since.select('key', 'error', 'duration_ms');
    if (process.env.KILLS !== undefined) console.log(JSON.stringify({ replaced: kills, repeated, lost }));
    expect(repeated).toBeLessThanOrEqual(lost.length);
  },
  90_000 + kills * 20_000,
);
