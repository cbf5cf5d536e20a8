import { expect, test } from 'vitest';
import { requestCancel } from '../../../src/db/run/run-control.ts';
import { restartForgotten, settleDeliveries } from '../../../src/parts/delivery/deliveries.ts';
import { runStarts } from '../../../src/use-cases/runs/delivery.ts';
import { useDatabase } from '../../support/database.ts';
import { aDeliveryCtx } from '../../support/delivery.ts';
import { aRun } from '../../support/factories.ts';

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

test('a run that Temporal has forgotten is started again; one that runs, ended there or began recently is not', async () => {
  const [forgotten, running, ended, young] = [
    await aStartedRun('1 hour'),
    await aStartedRun('1 hour'),
    await aStartedRun('1 hour'),
    await aStartedRun('1 second'),
  ];
  await requestCancel(place.db, forgotten, { reason: null, mode: 'graceful' });
  const started: string[] = [];
  const ctx = aDeliveryCtx(place.db, {
    workflows: {
      start: async ({ run_id }) => {
        started.push(run_id);
        throw new Error('Temporal is away');
      },
      listRunning: async function* () {
        yield running.run_id;
      },
      isForgotten: async (work) => !('run_id' in work) || work.run_id !== ended.run_id,
    },
  });
  expect(await restartForgotten(ctx, runStarts)).toBe(1);
  await settleDeliveries(ctx);
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
  expect(await restartForgotten(ctx, runStarts)).toBe(0);
});
