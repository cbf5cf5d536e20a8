/**
 * The ordinary day of a small fleet: sixty renders of two seconds on two slots, and a run of one render that comes in
 * the middle, while the worker is killed -9 once. Nothing fails, nothing is called twice but what the dead worker held,
 * and the small run does not wait for the large one.
 */

import type { Run } from '@capstan/core/contracts/run';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { answer, type Instance, startInstance } from '../support/fleet.ts';
import { useMortalCapstan } from '../support/shared-capstan.ts';
import { waitFor } from '../support/wait.ts';

const capstan = useMortalCapstan();
const renderMs = 2_000;
const slots = 2;
let gpu: Instance;
let db: Db;
const open = new Set<number>();
let mostOpen = 0;
const ended: number[] = [];

beforeAll(async () => {
  db = connectDatabase(capstan.databaseUrl, 1);
  gpu = await startInstance(capstan, { name: 'gpu', max_concurrency: slots });
  gpu.handle = (exec, response) => {
    const shot = Number(exec.input.shot);
    open.add(shot);
    mostOpen = Math.max(mostOpen, open.size);
    response.on('close', () => open.delete(shot));
    setTimeout(() => {
      open.delete(shot);
      ended.push(shot);
      answer(response, 200, { ok: true, output: {} });
    }, renderMs);
  };
  await db.raw(`create table called_in_line (run_id text, queued_at timestamptz, called_at timestamptz)`);
  await db.raw(
    `create function note_called_in_line() returns trigger language plpgsql as $$ begin
       insert into called_in_line values (new.run_id, new.queued_at, new.called_at); return null;
     end $$`,
  );
  await db.raw(
    `create trigger note_called after update of called_at on queued_call for each row
       when (new.called_at is not null) execute function note_called_in_line()`,
  );
});
afterAll(async () => {
  await db?.raw('drop table if exists called_in_line');
  await db?.raw('drop function if exists note_called_in_line cascade');
  await db?.destroy();
  await gpu?.stop();
});

/** How many calls of others were called from the line while the first one of a run stood in it. */
async function countCalledBefore(runId: string): Promise<number> {
  const { rows } = await db.raw(
    `select count(*)::int as count from called_in_line o, (select min(queued_at) as queued_at, min(called_at) as called_at
       from called_in_line where run_id = :runId) own
     where o.run_id <> :runId and o.called_at >= own.queued_at and o.called_at < own.called_at`,
    { runId },
  );
  return rows[0].count;
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
  await waitFor('calls that the worker holds', () => open.size === slots);
  const held = [...open];
  await capstan.killWorker('SIGKILL');
  await capstan.startWorker();
  expect(await capstan.ended(large.run_id, 300_000)).toMatchObject({ state: 'succeeded' });
  const calls = gpu.execs.map(({ input }) => Number(input.shot));
  const again = calls.filter((shot, at) => calls.indexOf(shot) < at);
  const before = await countCalledBefore(small.run_id);
  console.log(
    `${calls.length} calls for ${shots.length + 1} shots, at most ${mostOpen} at once; the dead worker held ${held.length}, made again ${again.length}; ${before} were called while the small run stood in line`,
  );
  expect(before).toBeLessThanOrEqual(slots);
  expect(new Set(calls).size).toBe(shots.length + 1);
  expect(again.length).toBeGreaterThan(0);
  expect(held).toEqual(expect.arrayContaining(again));
  expect(mostOpen).toBe(slots);
});
