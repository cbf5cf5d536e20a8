import { pino } from 'pino';
import { expect, test } from 'vitest';
import { type RecoverDependencies, recover } from '../../../src/services/recovery/recover.ts';
import { useDatabase } from '../../support/database.ts';
import { aClaim, anInstance, aRun, claimAttempt } from '../../support/factories.ts';
import { fakeWorkflows } from '../../support/run-workflows.ts';

const { db } = useDatabase();

async function aStartedRun() {
  const run = await aRun(db);
  await db('run').where({ run_id: run.run_id }).update({ start_delivered_at: db.fn.now() });
  return run;
}

test('runs that have ended in Temporal alone are named and left; with restart-all they start anew', async () => {
  const [forgotten, running, ended] = [await aStartedRun(), await aStartedRun(), await aStartedRun()];
  await claimAttempt(db, aClaim(running, await anInstance(db)));
  const started: string[] = [];
  const erased: string[] = [];
  let looks = 0;
  const dependencies: RecoverDependencies = {
    db,
    workflows: fakeWorkflows({
      listRunning: async function* () {
        yield running.run_id;
      },
      isForgotten: async (work) => 'run_id' in work && work.run_id === forgotten.run_id,
      erase: async ({ run_id }) => {
        erased.push(run_id);
        return ++looks % 2 === 0; // it takes a moment
      },
    }),
    delivery: { startSoon: (id) => void started.push(id), settled: async () => undefined },
    restartLadders: async () => 2,
    restartSchedules: async () => 1,
    registerSearchAttributes: async () => ['RunPhase'],
    pause: async () => undefined,
    logger: pino({ level: 'silent' }),
  };
  expect(await recover(dependencies, { restartsAll: false })).toMatchObject({
    open_runs: 3,
    restarted_runs: 1,
    running_runs: 1,
    ended_in_temporal: [ended.run_id],
    restarted_ladders: 2,
    restored_schedules: 1,
    search_attributes: ['RunPhase'],
    interrupted_calls: [{ run_id: running.run_id, step_id: 'a', capability: 'concat' }],
  });
  expect(started).toEqual([forgotten.run_id]);
  expect(erased).toEqual([]);
  const again = await recover(dependencies, { restartsAll: true });
  expect(again).toMatchObject({ restarted_runs: 2, ended_in_temporal: [], undelivered_starts: 1 });
  expect(new Set(erased)).toEqual(new Set([running.run_id, ended.run_id]));
});
