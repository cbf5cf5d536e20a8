/** Temporal is a port here that is away when a test decides it; everything else is real. */

import { newLadder } from '@capstan/core/ladder/ladder';
import { startLadder } from '@capstan/core/ladder/machine';
import type { EscalateInput } from '@capstan/core/workflow-payloads';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RunWorkflows } from '../../../../src/clients/temporal/run-workflows.ts';
import { connectDatabase, type Db } from '../../../../src/db/connect.ts';
import { insertEscalation } from '../../../../src/db/escalation/escalation.ts';
import {
  deliverDue,
  deliverSoon,
  restartForgotten,
  settleDeliveries,
} from '../../../../src/parts/delivery/deliveries.ts';
import { newId } from '../../../../src/parts/ids.ts';
import { ladderStarts } from '../../../../src/use-cases/escalation/ladder/delivery.ts';
import { storeLadder } from '../../../../src/use-cases/escalation/ladder/stored-ladder.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/database.ts';
import { aDeliveryCtx } from '../../../support/delivery.ts';
import { aCallingKey, aProject, aRun } from '../../../support/factories.ts';

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
    caller: run_id === null ? aCallingKey() : null,
  });
  return { id, projectId };
}

it('starts again a ladder of its own that Temporal has forgotten; not one that runs, ended there or began recently', async () => {
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
  const ctx = aDeliveryCtx(db, {
    workflows: {
      startEscalation: async (_, { escalation_id }) => {
        started.push(escalation_id);
        throw new Error('Temporal is away');
      },
      listRunningLadders: async function* () {
        yield running;
      },
      isForgotten: async (work) => 'escalation_id' in work && work.escalation_id !== ended,
    },
  });
  expect(await restartForgotten(ctx, ladderStarts)).toBe(1);
  await settleDeliveries(ctx);
  expect(started).toEqual([forgotten]);
  const isDelivered = async (id: string) =>
    (await db('escalation').where({ escalation_id: id }).first('start_delivered_at')).start_delivered_at !==
    null;
  expect(await Promise.all(ids.map(isDelivered))).toEqual([false, true, true, true]);
  // The decision of the person is sent to the new workflow.
  expect(await db('review').where({ review_id: review.review_id }).first('delivered_at')).toEqual({
    delivered_at: null,
  });
  expect(await restartForgotten(ctx, ladderStarts)).toBe(0);
  await db('escalation').update({ start_delivered_at: new Date() });
});

it('starts a ladder by itself once, also when Temporal was away, and leaves those of steps to their runs', async () => {
  const started: [string, EscalateInput][] = [];
  let isUnavailable = true;
  const workflows: Partial<RunWorkflows> = {
    startEscalation: async ({ project_id, job_type }, input) => {
      if (isUnavailable) throw new Error('connection refused');
      started.push([`${project_id} ${job_type}`, input]);
    },
  };
  const ctx = {
    ...aDeliveryCtx(db, { workflows }),
    config: { HEARTBEAT_TIMEOUT_MS: 30_000, LEASE_MS: 30_000, ENGINE_VERSION: 7, HISTORY_EVENTS: 4_096 },
    publicUrl: () => 'http://c.test',
  };
  const deliverOverdue = async () => (await deliverDue(ctx, ladderStarts)).delivered;
  const { id, projectId } = await anEscalation();
  await anEscalation((await aRun(db)).run_id);
  await deliverSoon(ctx, ladderStarts, { escalation_id: id });
  isUnavailable = false;
  const createdAt = (age: string) =>
    db.raw(`update escalation set created_at = clock_timestamp() - ?::interval`, [age]);
  await createdAt('-1 hour'); // young, however slow the machine is
  expect(await deliverOverdue()).toBe(0);
  await createdAt('4 seconds');
  expect(await deliverOverdue()).toBe(1);
  expect(await deliverOverdue()).toBe(0);
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
