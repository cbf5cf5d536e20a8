import { expect, test } from 'vitest';
import type { RunPipelineInput } from '../../../src/core/workflow-payloads.ts';
import { requestCancel } from '../../../src/db/run/run-control.ts';
import { createRunDelivery } from '../../../src/services/runs/delivery.ts';
import { useDatabase } from '../../support/database.ts';
import { aRun } from '../../support/factories.ts';
import { fakeWorkflows } from '../../support/run-workflows.ts';
import { silentLogger } from '../registry/registry-bench.ts';

const { db } = useDatabase();

test('a run that was terminated as its server died while starting it is ended in Temporal, once', async () => {
  const ended: string[] = [];
  const delivery = createRunDelivery({
    db,
    workflows: fakeWorkflows({
      terminate: async ({ run_id: runId }) => {
        ended.push(runId);
        return 'ended';
      },
    }),
    heartbeatTimeoutMs: 1_000,
    engineVersion: 1,
    historyEvents: 4_096,
    urlOf: (runId) => `http://capstan.test/v1/runs/${runId}`,
    logger: silentLogger,
  });
  const [lost, recent] = [await aRun(db), await aRun(db)];
  for (const run of [lost, recent]) {
    await requestCancel(db, run, { reason: null, mode: 'terminate' });
    await delivery.closeUnstarted(run.project_id, run.run_id);
  }
  const longAgo = new Date(Date.now() - 3_600_000);
  await db('run').where({ run_id: lost.run_id }).update({ finished_at: longAgo });
  await delivery.deliverOverdue();
  await delivery.deliverOverdue();
  expect(ended).toEqual([lost.run_id]);
});

test('a run is started with the version that the configuration names, until all processes are new', async () => {
  const started: RunPipelineInput[] = [];
  const delivery = createRunDelivery({
    db,
    workflows: fakeWorkflows({ start: async (input) => void started.push(input) }),
    heartbeatTimeoutMs: 1_000,
    engineVersion: 1,
    historyEvents: 4_096,
    urlOf: (runId) => `http://capstan.test/v1/runs/${runId}`,
    logger: silentLogger,
  });
  const { run_id } = await aRun(db);
  delivery.startSoon(run_id);
  await delivery.settled();
  expect(started.map((input) => [input.run_id, input.engine_version])).toEqual([[run_id, 1]]);
});
