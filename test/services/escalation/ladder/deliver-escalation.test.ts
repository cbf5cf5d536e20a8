/** Temporal is a port here that is away when a test says so; everything else is real. */

import { pino } from 'pino';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { newLadder } from '../../../../src/core/ladder/ladder.ts';
import { startLadder } from '../../../../src/core/ladder/machine.ts';
import type { EscalateInput } from '../../../../src/core/workflow-payloads/escalate-input.ts';
import { connectDatabase, type Db } from '../../../../src/db/connect.ts';
import { insertEscalation } from '../../../../src/db/escalation/escalation.ts';
import { createEscalationDelivery } from '../../../../src/services/escalation/ladder/deliver-escalation.ts';
import { newId } from '../../../../src/services/ids.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/database.ts';
import { aProject, aRun } from '../../../support/factories.ts';

let database: TestDatabase;
let db: Db;
beforeAll(async () => {
  database = await createTestDatabase();
  db = connectDatabase(database.url, 4);
});
afterAll(async () => {
  await db.destroy();
  await database.drop();
});

async function anEscalation(run_id: string | null = null): Promise<{ id: string; projectId: string }> {
  const [id, { project_id: projectId }] = [newId('escalation'), await aProject(db)];
  await insertEscalation(db, {
    escalation_id: id,
    project_id: projectId,
    job_type: 'summary',
    prompt: 'p',
    context: undefined,
    repo_context: '',
    signals: [],
    result_schema: null,
    previous_id: null,
    max_usd: null,
    escalation_level: 2,
    escalation_history: [],
    escalation_advice: [],
    fingerprint: null,
    ladder: newLadder(startLadder({ start_level: 2, history: [], advice: [] })),
    model_spec: { level: 2, label: 'capable model', capability: 'model.capable', model: null },
    step: run_id === null ? null : { run_id, step_id: 'a', item: 0 },
  });
  return { id, projectId };
}

it('starts a ladder by itself once, also when Temporal was away, and leaves those of steps to their runs', async () => {
  const started: [string, EscalateInput][] = [];
  let isUnavailable = true;
  const delivery = createEscalationDelivery({
    db,
    logger: pino({ level: 'silent' }),
    heartbeatTimeoutMs: 30_000,
    engineVersion: 7,
    publicUrl: () => 'http://c.test',
    workflows: {
      startEscalation: async (projectId, input) => {
        if (isUnavailable) throw new Error('connection refused');
        started.push([projectId, input]);
      },
    },
  });
  const { id, projectId } = await anEscalation();
  await anEscalation((await aRun(db)).run_id);
  delivery.startSoon(id);
  await delivery.settled();
  isUnavailable = false;
  expect(await delivery.deliverOverdue()).toBe(0);
  await db.raw(`update escalation set created_at = created_at - interval '4 seconds'`);
  expect(await delivery.deliverOverdue()).toBe(1);
  expect(await delivery.deliverOverdue()).toBe(0);
  expect(started).toEqual([
    [
      projectId,
      {
        engine_version: 7,
        escalation_id: id,
        waits_for_reviews: true,
        heartbeat_timeout_ms: 30_000,
        from: { transition: 0, command: { type: 'execute', level: 2 } },
        url: `http://c.test/v1/escalations/${id}`,
      },
    ],
  ]);
});
