/** Temporal is a port here that is away when a test says so; everything else is real. */

import { pino } from 'pino';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { newLadder } from '../../../../src/core/ladder/ladder.ts';
import { startLadder } from '../../../../src/core/ladder/machine.ts';
import type { EscalateInput } from '../../../../src/core/workflow-payloads.ts';
import { connectDatabase, type Db } from '../../../../src/db/connect.ts';
import { insertEscalation } from '../../../../src/db/escalation/escalation.ts';
import {
  createEscalationDelivery,
  createRestartForgottenLadders,
} from '../../../../src/services/escalation/ladder/delivery.ts';
import { storeLadder } from '../../../../src/services/escalation/ladder/stored-ladder.ts';
import { newId } from '../../../../src/services/ids.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/database.ts';
import { aProject, aRun } from '../../../support/factories.ts';
import { fakeWorkflows } from '../../../support/run-workflows.ts';

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
    ...storeLadder(newLadder(startLadder({ start_level: 2, history: [], advice: [] }))),
    fingerprint: null,
    model_spec: { level: 2, label: 'capable model', capability: 'model.capable', model: null },
    step: run_id === null ? null : { run_id, step_id: 'a', item: 0 },
  });
  return { id, projectId };
}

it('starts a ladder by itself again that Temporal has forgotten; not one that runs, ended there or began just now', async () => {
  const ids: string[] = [];
  for (const age of ['1 hour', '1 hour', '1 hour', '1 second']) {
    const { id } = await anEscalation();
    const began = { start_delivered_at: db.raw(`clock_timestamp() - ?::interval`, [age]) };
    await db('escalation').where({ escalation_id: id }).update(began);
    ids.push(id);
  }
  const [forgotten = '', running = '', ended = ''] = ids;
  const review = { review_id: newId('review'), reason: 'r', payload: '{}', due_at: new Date() };
  const { project_id } = await db('escalation').where({ escalation_id: forgotten }).first('project_id');
  const decided = { state: 'resolved', decision: '{}', decided_by: 'ann', decided_at: new Date() };
  await db('review').insert({
    ...review,
    ...decided,
    project_id,
    kind: 'escalation',
    delivered_at: new Date(),
  });
  await db('escalation')
    .where({ escalation_id: forgotten })
    .update({ state: 'in_review', review_id: review.review_id });
  const started: string[] = [];
  const restart = createRestartForgottenLadders({
    db,
    workflows: fakeWorkflows({
      listRunningLadders: async function* () {
        yield running;
      },
      isForgotten: async (work) => 'escalation_id' in work && work.escalation_id !== ended,
    }),
    delivery: { startSoon: (id) => void started.push(id) },
    logger: pino({ level: 'silent' }),
  });
  expect(await restart()).toBe(1);
  expect(started).toEqual([forgotten]);
  const isDelivered = async (id: string) =>
    (await db('escalation').where({ escalation_id: id }).first('start_delivered_at')).start_delivered_at !==
    null;
  expect(await Promise.all(ids.map(isDelivered))).toEqual([false, true, true, true]);
  // What the person decided is told to the new workflow.
  expect(await db('review').where({ review_id: review.review_id }).first('delivered_at')).toEqual({
    delivered_at: null,
  });
  expect(await restart()).toBe(0);
  await db('escalation').update({ start_delivered_at: new Date() });
});

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
      startEscalation: async ({ project_id, job_type }, input) => {
        if (isUnavailable) throw new Error('connection refused');
        started.push([`${project_id} ${job_type}`, input]);
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
      `${projectId} summary`,
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
