/**
 * Runs of every kind of step while workers and the server are killed -9, one after the other, and one worker sleeps
 * for longer than anybody waits for it: in the end there is one result of each step, and one charge for it.
 */

import type { Run } from '@capstan/core/contracts/run';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { readAttemptKeys } from '../support/attempt-keys.ts';
import { type AddedWorker, type Capstan, startCapstan } from '../support/capstan.ts';
import { watchCommits } from '../support/commit-watch.ts';
import { type Instance, startInstance } from '../support/fleet.ts';
import {
  answerHashes,
  type HashCall,
  hashJob,
  hashOrder,
  hashOutput,
  hashPipeline,
  subPipeline,
  succeedingCalls,
} from '../support/hash-chain.ts';
import { findViolations } from '../support/invariants.ts';
import { countExecutions, findLeftovers } from '../support/leftovers.ts';
import { runs } from '../support/runs.ts';
import { waitFor } from '../support/wait.ts';

const priceUsd = 0.01;
const priceNano = 10_000_000;
const jobs = Array.from({ length: runs(10) }, (_, n) => hashJob(n));
const wanted = jobs.reduce((sum, job) => sum + succeedingCalls(job), 0);

let capstan: Capstan;
let another: AddedWorker;
let db: Db;
const calls: HashCall[] = [];
const instances: Instance[] = [];

beforeAll(async () => {
  capstan = await startCapstan({ HISTORY_EVENTS: '80', HEARTBEAT_TIMEOUT_MS: '2000', LEASE_MS: '3000' });
  db = connectDatabase(capstan.databaseUrl, 4);
  await watchCommits(db);
  for (let at = 0; at < 2; at++) {
    const instance = await startInstance(capstan, {
      name: 'hash',
      max_concurrency: 200,
      cost_model: { type: 'per_call', rate_usd: priceUsd },
    });
    instance.handle = answerHashes(calls);
    instances.push(instance);
  }
  await capstan.request('POST', '/v1/pipelines', subPipeline);
  another = await capstan.addWorker();
}, 240_000);
afterAll(async () => {
  await Promise.all(instances.map((instance) => instance.stop()));
  await db?.destroy();
  await capstan?.stop();
});

async function countLost(): Promise<number> {
  const [row] = await db('attempt').where({ state: 'lost' }).count('* as lost');
  return Number(row?.lost);
}

/** Until then the runs are in the middle of something. */
function callsReach(count: number): Promise<unknown> {
  return waitFor(`${count} calls`, () => calls.length >= count, 120_000);
}

/** A worker that is replaced by another one whenever it is killed. */
function createPost(first: Pick<AddedWorker, 'kill'>) {
  let holder = Promise.resolve(first);
  return {
    kill: async (): Promise<void> => {
      await (await holder).kill('SIGKILL');
      holder = capstan.addWorker();
      holder.catch(() => undefined);
    },
  };
}

/** Its calls are given to others, and then it wants to end them too. */
async function sleepTooLong(worker: AddedWorker): Promise<void> {
  const before = await countLost();
  worker.send('SIGSTOP');
  await waitFor('contact with its calls to be lost', async () => (await countLost()) > before, 120_000);
  await callsReach(calls.length + jobs.length);
  worker.send('SIGCONT');
}

async function restartServer(): Promise<void> {
  await capstan.killServer('SIGKILL');
  await capstan.startServer();
}

async function wreak(): Promise<void> {
  const first = createPost({ kill: capstan.killWorker });
  const second = createPost(another);
  await callsReach(wanted * 0.1);
  await first.kill();
  await callsReach(calls.length + 1); // by the other one, which is alone until there is a new one
  await sleepTooLong(another);
  await callsReach(wanted * 0.4);
  await Promise.all([restartServer(), second.kill()]);
  await callsReach(wanted * 0.7);
  await first.kill();
}

/** Calls and their price, by the attempts of each unit. */
async function readCharges() {
  const { rows } = await db.raw<{
    rows: { unit: string; state: string; ends: number; odd: number; lost: number }[];
  }>(
    `select format('%s.%s.%s', s.run_id, s.step_id, s.item) as unit, s.state,
       count(*) filter (where a.state = 'settled' and a.settled_nano = :price)::int as ends,
       count(*) filter (where not (a.state = 'settled' and a.settled_nano in (0, :price)
         or a.state = 'released' and a.settled_nano = 0 or a.state = 'lost' and a.settled_nano in (0, :price)))::int as odd,
       count(*) filter (where a.state = 'lost' and a.settled_nano = :price)::int as lost
     from step s join attempt a using (run_id, step_id, item) group by 1, 2`,
    { price: priceNano },
  );
  return rows;
}

/** First arrivals that came before the end of something that comes first. */
async function findHasty(): Promise<string[]> {
  const ends = new Map<string, number>();
  const rows = await db('step').where({ item: 0 }).select('run_id', 'step_id', 'finished_at');
  for (const { run_id, step_id, finished_at } of rows)
    ends.set(`${run_id}.${step_id}`, finished_at?.getTime());
  const seen = new Set<string>();
  const keys = await readAttemptKeys(db);
  return calls.flatMap(({ key: sent, at }) => {
    const key = keys.get(sent) ?? '';
    if (seen.has(key)) return [];
    seen.add(key);
    const [run = '', step = ''] = key.split('.');
    // The database's clock has parts of a millisecond.
    const hasty = (hashOrder[step] ?? []).filter((before) => at + 1 < (ends.get(`${run}.${before}`) ?? 0));
    return hasty.map((before) => `${key} was called before ${before} had ended`);
  });
}

test('runs of every kind of step survive kills of workers and server: each step has one result and one charge', async () => {
  const submitted = await Promise.all(
    jobs.map((job) => capstan.request<Run>('POST', '/v1/runs', { definition: hashPipeline, job })),
  );
  expect(submitted.map(({ status }) => status)).toEqual(jobs.map(() => 202));
  await wreak();

  await waitFor(
    'all runs to end',
    async () => (await db('run').whereNull('finished_at').first()) === undefined,
    120_000,
  );
  for (const [n, { body }] of submitted.entries()) {
    const run = await capstan.ended(body.run_id);
    const seen = { state: run.state, output: run.output, error: run.error };
    expect(seen, body.run_id).toEqual({ state: 'succeeded', output: hashOutput(hashJob(n)) });
  }
  await waitFor('nothing to be left', async () => (await findLeftovers(db)).length === 0, 60_000).catch(
    async () => expect(await findLeftovers(db)).toEqual([]),
  );

  const charges = await readCharges();
  const succeeded = charges.filter(({ state }) => state === 'succeeded');
  expect(succeeded).toHaveLength(wanted);
  expect(
    charges.filter(({ state, ends, odd }) => odd > 0 || ends !== (state === 'succeeded' ? 1 : 0)),
  ).toEqual([]);
  const lost = charges.reduce((sum, unit) => sum + unit.lost, 0);
  expect(lost).toBeGreaterThan(0);
  const [budget] = await db('budget').whereLike('scope', 'project:%').sum('spent_nano as spent');
  expect(Number(budget?.spent)).toBe((wanted + lost) * priceNano);

  expect(await findHasty()).toEqual([]);
  expect(await findViolations(db, [])).toEqual([]);
  const counts = await waitFor('Temporal to list all ends', async () => {
    const { RUNNING = 0, COMPLETED = 0, ...others } = await countExecutions(capstan.taskQueue);
    return RUNNING === 0 && COMPLETED === 2 * jobs.length ? others : null;
  });
  expect(Object.keys(counts)).toEqual(['CONTINUED_AS_NEW']);
  expect(counts.CONTINUED_AS_NEW).toBeGreaterThanOrEqual(jobs.length);
  expect(capstan.logs()).not.toMatch(/nondeterminism|TMPRL1100/i);
}, 400_000);
