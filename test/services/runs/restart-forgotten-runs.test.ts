import { pino } from 'pino';
import { expect, test } from 'vitest';
import { requestCancel } from '../../../src/db/run/run-control.ts';
import { createRestartForgottenRuns } from '../../../src/services/runs/repair.ts';
import { useDatabase } from '../../support/database.ts';
import { aRun } from '../../support/factories.ts';
import { fakeWorkflows } from '../../support/run-workflows.ts';

const place = useDatabase();

async function aStartedRun(age: string) {
  const run = await aRun(place.db);
  await place
    .db('run')
    .where({ run_id: run.run_id })
    .update({
      start_delivered_at: place.db.raw(`clock_timestamp() - ?::interval`, [age]),
      cancel_delivered_at: place.db.fn.now(),
      control_delivered: 2,
    });
  return run;
}

test('a run that Temporal has forgotten is started again; one that runs, ended there or began just now is not', async () => {
  const [forgotten, running, ended, young] = [
    await aStartedRun('1 hour'),
    await aStartedRun('1 hour'),
    await aStartedRun('1 hour'),
    await aStartedRun('1 second'),
  ];
  await requestCancel(place.db, forgotten, { reason: null, mode: 'graceful' });
  const started: string[] = [];
  const restart = createRestartForgottenRuns({
    db: place.db,
    workflows: fakeWorkflows({
      listRunning: async function* () {
        yield running.run_id;
      },
      isForgotten: async (work) => !('run_id' in work) || work.run_id !== ended.run_id,
    }),
    delivery: { startSoon: (runId) => void started.push(runId) },
    logger: pino({ level: 'silent' }),
  });
  expect(await restart()).toBe(1);
  expect(started).toEqual([forgotten.run_id]);
  expect(await place.db('run').where({ run_id: forgotten.run_id }).first('*')).toMatchObject({
    start_delivered_at: null,
    cancel_delivered_at: null,
    control_delivered: 0,
  });
  for (const { run_id } of [running, ended, young]) {
    const row = await place.db('run').where({ run_id }).first('start_delivered_at');
    expect(row.start_delivered_at).not.toBe(null);
  }
  expect(await restart()).toBe(0);
});
