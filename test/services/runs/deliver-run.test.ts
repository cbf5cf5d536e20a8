import { expect, test } from 'vitest';
import type { RunPipelineInput } from '../../../src/core/run/workflow-input.ts';
import { createRunDelivery } from '../../../src/services/runs/deliver-run.ts';
import { useDatabase } from '../../support/database.ts';
import { aRun } from '../../support/factories.ts';
import { silentLogger } from '../registry/registry-bench.ts';

const { db } = useDatabase();

test('a run is started with the version that the configuration names, until all processes are new', async () => {
  const started: RunPipelineInput[] = [];
  const delivery = createRunDelivery({
    db,
    workflows: {
      start: async (input) => void started.push(input),
      cancel: async () => 'gone',
      startEscalation: async () => undefined,
      signalReviewed: async () => 'gone',
      hasSearchAttributes: async () => false,
      isReachable: async () => true,
    },
    ...{
      heartbeatTimeoutMs: 1_000,
      engineVersion: 1,
      publicUrl: () => 'http://capstan.test',
      logger: silentLogger,
    },
  });
  const { run_id } = await aRun(db);
  delivery.startSoon(run_id);
  await delivery.settled();
  expect(started.map((input) => [input.run_id, input.engine_version])).toEqual([[run_id, 1]]);
});
