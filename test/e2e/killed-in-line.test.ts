/**
 * The ordinary day of a small fleet: sixty renders of two seconds on two slots, and a run of one render that comes in
 * the middle, while the worker is killed -9 once. Nothing fails, nothing is called twice but what the dead worker held,
 * and the small run does not wait for the large one.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Run } from '../../src/contracts/run.ts';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { answer, type Instance, startInstance } from '../support/fleet.ts';
import { useMortalCapstan } from '../support/shared-capstan.ts';
import { waitFor } from '../support/wait.ts';

const capstan = useMortalCapstan();
const renderMs = 2_000;
const slots = 2;
let gpu: Instance;
let db: Db;
const most = { open: 0, seen: 0 };
const ended: number[] = [];

beforeAll(async () => {
  db = connectDatabase(capstan.databaseUrl, 1);
  gpu = await startInstance(capstan, { name: 'gpu', max_concurrency: slots });
  gpu.handle = (exec, response) => {
    most.open += 1;
    most.seen = Math.max(most.seen, most.open);
    let isOpen = true;
    const end = (): void => {
      if (isOpen) most.open -= 1;
      isOpen = false;
    };
    response.on('close', end);
    setTimeout(() => {
      end();
      ended.push(Number(exec.input.shot));
      answer(response, 200, { ok: true, output: {} });
    }, renderMs);
  };
});
afterAll(async () => {
  await db?.destroy();
  await gpu?.stop();
});

/** When each event of a type came, in ms. */
async function momentsOf(runId: string, type: string): Promise<number[]> {
  const rows = await db('event').where({ run_id: runId, type }).select('at');
  return rows.map(({ at }) => (at as Date).getTime());
}

test('sixty renders on two slots all succeed while a worker dies, and a run of one ends in its turn', async () => {
  const shots = Array.from({ length: 60 }, (_, at) => at);
  const large: Run = await capstan.submit([
    {
      id: 'render',
      capability: 'gpu',
      timeout: '20s',
      for_each: { items: shots },
      input: { shot: '{{ item }}' },
    },
  ]);
  await waitFor('a third to be done', () => ended.length >= 20);
  const small: Run = await capstan.submit([{ id: 'one', capability: 'gpu', input: { shot: 1_000 } }]);
  expect(await capstan.ended(small.run_id)).toMatchObject({ state: 'succeeded' });
  await capstan.killWorker('SIGKILL');
  await capstan.startWorker();
  expect(await capstan.ended(large.run_id, 300_000)).toMatchObject({ state: 'succeeded' });
  const [queued = 0] = await momentsOf(small.run_id, 'step.waiting');
  const [called = 0] = await momentsOf(small.run_id, 'step.routed');
  const others = await momentsOf(large.run_id, 'step.routed');
  const between = others.filter((at) => at > queued && at < called);
  const calls = gpu.execs.filter(({ input }) => input.shot !== 1_000).map(({ input }) => Number(input.shot));
  const again = calls.length - new Set(calls).size;
  console.log(
    `${ended.length} calls ended, ${again} made again after the kill, at most ${most.seen} at once; the small run waited ${called - queued} ms, while ${between.length} calls of the large one began`,
  );
  expect(between.length).toBeLessThanOrEqual(2 * slots);
  expect(new Set(calls).size).toBe(shots.length);
  expect(calls.length).toBeLessThanOrEqual(shots.length + slots);
  expect(most.seen).toBe(slots);
});
