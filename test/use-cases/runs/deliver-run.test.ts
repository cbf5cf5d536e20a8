import type { RunPipelineInput } from '@capstan/core/workflow-payloads';
import { expect, test } from 'vitest';
import { requestCancel } from '../../../src/db/run/run-control.ts';
import { deliverDue, deliverSoon } from '../../../src/parts/delivery/deliveries.ts';
import { closeUnstarted, runStarts, unmarkedStarts } from '../../../src/use-cases/runs/delivery.ts';
import { useDatabase } from '../../support/database.ts';
import { aDeliveryCtx } from '../../support/delivery.ts';
import { aRun } from '../../support/factories.ts';

const { db } = useDatabase();

test('a run that was terminated as its server died while starting it is ended in Temporal, once', async () => {
  const ended: string[] = [];
  const ctx = aDeliveryCtx(db, {
    workflows: {
      terminate: async ({ run_id: runId }) => {
        ended.push(runId);
        return 'ended';
      },
    },
  });
  const [lost, recent] = [await aRun(db), await aRun(db)];
  for (const run of [lost, recent]) {
    await requestCancel(db, run, { reason: null, mode: 'terminate' });
    await closeUnstarted(ctx, run);
  }
  const longAgo = new Date(Date.now() - 3_600_000);
  await db('run').where({ run_id: lost.run_id }).update({ finished_at: longAgo });
  for (let round = 0; round < 2; round++) await deliverDue(ctx, unmarkedStarts);
  expect(ended).toEqual([lost.run_id]);
});

test('a run that was terminated while it was started is ended in Temporal, also when Temporal was away then', async () => {
  const told: string[] = [];
  let isAway = true;
  const run = await aRun(db);
  const ctx = aDeliveryCtx(db, {
    workflows: {
      start: async () => {
        await requestCancel(db, run, { reason: null, mode: 'terminate' });
        await closeUnstarted(ctx, run);
        told.push('start');
      },
      terminate: async () => {
        if (isAway) throw new Error('Temporal is away');
        told.push('terminate');
        return 'ended';
      },
    },
  });
  await deliverSoon(ctx, runStarts, run);
  expect(told).toEqual(['start']);
  isAway = false;
  await db('run')
    .where({ run_id: run.run_id })
    .update({ finished_at: new Date(Date.now() - 3_600_000) });
  for (let round = 0; round < 2; round++) await deliverDue(ctx, unmarkedStarts);
  expect(told).toEqual(['start', 'terminate']);
});

test('a run is started with the version that the configuration names, until all processes are new', async () => {
  const started: RunPipelineInput[] = [];
  const workflows = { start: async (input: RunPipelineInput) => void started.push(input) };
  const ctx = aDeliveryCtx(db, { workflows }, 1);
  const { run_id } = await aRun(db);
  await deliverSoon(ctx, runStarts, { run_id });
  expect(started.map((input) => [input.run_id, input.engine_version])).toEqual([[run_id, 1]]);
});

test('a run remembers the key by which its start is encrypted, which may be newer than its row', async () => {
  const [plain, encrypted] = [await aRun(db), await aRun(db)];
  await deliverSoon(aDeliveryCtx(db), runStarts, plain);
  await deliverSoon(aDeliveryCtx(db, { payloadKeys: ['k1', 'k0'] }), runStarts, encrypted);
  const keyOf = ({ run_id }: { run_id: string }) => db('run').where({ run_id }).first('payload_key');
  expect(await keyOf(plain)).toEqual({ payload_key: '' });
  expect(await keyOf(encrypted)).toEqual({ payload_key: 'k1' });
});
