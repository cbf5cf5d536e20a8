/** Temporal is a port here that is away when a test decides it; everything else is real. */

import { reviewDueMs } from '@capstan/core/ladder/levels';
import type { ReviewedSignal } from '@capstan/core/workflow-payloads';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { WaitingWorkflow } from '../../../src/clients/temporal/run-workflows.ts';
import { listAudit } from '../../../src/db/access/audit.ts';
import { connectDatabase, type Db } from '../../../src/db/connect.ts';
import { insertEscalation, markEscalationDelivered } from '../../../src/db/escalation/escalation.ts';
import { type ReviewRow, readReview } from '../../../src/db/review/review.ts';
import { deliverDue, settleDeliveries } from '../../../src/parts/delivery/deliveries.ts';
import { newId } from '../../../src/parts/ids.ts';
import { endedReviews, expireDueReviews } from '../../../src/use-cases/reviews/delivery.ts';
import { openReview, reopenReview } from '../../../src/use-cases/reviews/opening.ts';
import { type DecisionOrder, decideReview } from '../../../src/use-cases/reviews/reviews.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { aDeliveryCtx } from '../../support/delivery.ts';
import { aCallingKey, aProject, aRun } from '../../support/factories.ts';
import { withoutCapabilities } from '../../support/reviews.ts';

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

function caller(project_id: string) {
  return {
    key_id: 'key_1',
    project_id,
    projects: [project_id],
    scopes: new Set(['review:decide'] as const),
  };
}

function aService() {
  const sent: (WaitingWorkflow & ReviewedSignal)[] = [];
  const temporal = { isUnavailable: false, knows: true, meanwhile: async (): Promise<void> => undefined };
  const ctx = aDeliveryCtx(db, {
    workflows: {
      signalReviewed: async (waiting, signal) => {
        if (temporal.isUnavailable) throw new Error('connection refused');
        if (!temporal.knows) {
          await temporal.meanwhile();
          return 'gone';
        }
        sent.push({ ...waiting, ...signal });
        return 'sent';
      },
    },
  });
  const delivery = {
    deliverOverdue: async () => (await deliverDue(ctx, endedReviews)).delivered,
    expireDue: () => expireDueReviews(ctx),
    settled: () => settleDeliveries(ctx),
  };
  const deciding = { ...withoutCapabilities(db), ...ctx };
  const decide = (by: ReturnType<typeof caller>, decision: DecisionOrder) =>
    decideReview(deciding, by, decision);
  return { sent, temporal, delivery, decide };
}

let escalations = 0;
async function aReview(due_in_ms = reviewDueMs('standard')) {
  const { run_id, project_id } = await aRun(db);
  const escalation_id = `esc_${escalations++}`;
  const { review_id } = await openReview(db, {
    project_id,
    kind: 'escalation',
    reason: 'the ladder is exhausted',
    due_in_ms,
    payload: {},
    run_id,
    step_id: 'a',
    item: 0,
    escalation_id,
  });
  return { review_id, run_id, project_id, escalation_id };
}

function read(review_id: string) {
  return readReview(db, review_id) as Promise<ReviewRow>;
}

/** Maintenance leaves to the process that decided what is younger than this. */
function passThreeSeconds() {
  return db.raw(
    `update review set decided_at = decided_at - interval '4 seconds' where decided_at is not null`,
  );
}

function order(review_id: string, version = 1) {
  return { review_id, version, decision: { action: 'retry' }, idempotency: null } as const;
}

it('signals the waiting run at once, and not again', async () => {
  const { sent, delivery, decide } = aService();
  const { review_id, project_id, run_id } = await aReview();
  await decide(caller(project_id), order(review_id));
  await delivery.settled();
  await passThreeSeconds();
  await delivery.deliverOverdue();
  expect(sent).toEqual([{ pipeline: 'trailer', run_id, review_id, version: 2 }]);
  expect((await read(review_id)).delivered_at).toEqual(expect.any(Date));
});

it('stores a decision while Temporal is away and delivers it when it is back', async () => {
  const { sent, temporal, delivery, decide } = aService();
  temporal.isUnavailable = true;
  const [first, second] = [await aReview(), await aReview()];
  for (const { project_id, review_id } of [first, second]) {
    const { review } = await decide(caller(project_id), order(review_id));
    expect(review).toMatchObject({ state: 'resolved', decision: { action: 'retry' } });
  }
  await delivery.settled();
  expect(await delivery.deliverOverdue()).toBe(0);
  await passThreeSeconds();
  expect(await delivery.deliverOverdue()).toBe(0);
  expect((await read(first.review_id)).delivered_at).toBeNull();
  temporal.isUnavailable = false;
  expect(await delivery.deliverOverdue()).toBe(2);
  const told = sent.map(({ review_id }) => review_id);
  expect(told.toSorted()).toEqual([first.review_id, second.review_id].toSorted());
  expect(await delivery.deliverOverdue()).toBe(0);
});

it('gives up on a workflow that is gone', async () => {
  const { temporal, delivery, decide } = aService();
  temporal.knows = false;
  const { review_id, project_id } = await aReview();
  await decide(caller(project_id), order(review_id));
  await delivery.settled();
  expect((await read(review_id)).delivered_at).toEqual(expect.any(Date));
});

it('delivers an expiry like a decision, once, and audits it', async () => {
  const { sent, delivery, decide } = aService();
  const { review_id, project_id, run_id } = await aReview(-1);
  expect(await delivery.expireDue()).toBe(1);
  expect(await delivery.expireDue()).toBe(0);
  await passThreeSeconds();
  await delivery.deliverOverdue();
  expect(sent).toEqual([{ pipeline: 'trailer', run_id, review_id, version: 2 }]);
  await expect(decide(caller(project_id), order(review_id, 2))).rejects.toMatchObject({
    code: 'state_conflict',
    details: { review: { state: 'expired', version: 2 } },
  });
  expect(await listAudit(db, project_id, { limit: 10 })).toMatchObject([
    { action: 'review.expired', actor: 'maintenance', subject: review_id },
  ]);
});

it('signals a ladder of its own when no run waits', async () => {
  const { sent, delivery, decide } = aService();
  const { project_id } = await aReview();
  const escalation_id = 'esc_alone';
  const { review_id } = await openReview(db, {
    project_id,
    kind: 'escalation',
    reason: 'gave up',
    due_in_ms: 1_000,
    payload: {},
    escalation_id,
  });
  await decide(caller(project_id), order(review_id));
  await delivery.settled();
  expect(sent).toEqual([{ escalation_id, review_id, version: 2 }]);
});

/** A question of a ladder by itself, whose workflow Temporal has not taken. */
async function aLadderReview() {
  const [escalation_id, { project_id }] = [newId('escalation'), await aProject(db)];
  await insertEscalation(db, {
    escalation_id,
    project_id,
    job_type: 'summary',
    prompt: 'p',
    context: undefined,
    ladder: {},
    repo_context: '',
    signals: [],
    result_schema: null,
    previous_id: null,
    max_usd: null,
    escalation_level: 5,
    escalation_history: [],
    escalation_advice: [],
    fingerprint: null,
    model_spec: { level: 5, label: 'human review', capability: null, model: null },
    step: null,
    caller: aCallingKey(),
  });
  const question = { kind: 'escalation', reason: 'gave up', due_in_ms: 60_000, payload: {} } as const;
  const { review_id } = await openReview(db, { project_id, escalation_id, ...question });
  return { review_id, project_id, escalation_id };
}

it('keeps a decision for a ladder that Temporal has not started yet', async () => {
  const { sent, temporal, delivery, decide } = aService();
  const { review_id, project_id, escalation_id } = await aLadderReview();
  temporal.knows = false;
  await decide(caller(project_id), order(review_id));
  await delivery.settled();
  await passThreeSeconds();
  expect(await delivery.deliverOverdue()).toBe(0);
  expect((await read(review_id)).delivered_at).toBeNull();
  temporal.knows = true;
  await markEscalationDelivered(db, escalation_id);
  expect(await delivery.deliverOverdue()).toBe(1);
  expect(sent).toEqual([{ escalation_id, review_id, version: 2 }]);
});

it('keeps a decision for a ladder that starts during the delivery', async () => {
  const { temporal, delivery, decide } = aService();
  const { review_id, project_id, escalation_id } = await aLadderReview();
  temporal.knows = false;
  temporal.meanwhile = () => markEscalationDelivered(db, escalation_id);
  await decide(caller(project_id), order(review_id));
  await delivery.settled();
  expect((await read(review_id)).delivered_at).toBeNull();
});

it.each([
  ['was started', { start_delivered_at: new Date() }],
  ['ended before its start', { state: 'cancelled', finished_at: new Date() }],
])('gives up on the workflow of a ladder that %s and is gone', async (_, change) => {
  const { temporal, delivery, decide } = aService();
  const { review_id, project_id, escalation_id } = await aLadderReview();
  await db('escalation').where({ escalation_id }).update(change);
  temporal.knows = false;
  await decide(caller(project_id), order(review_id));
  await delivery.settled();
  expect((await read(review_id)).delivered_at).toEqual(expect.any(Date));
});

it('asks three times in all, each with a version of its own, and is open once', async () => {
  const { sent, delivery, decide } = aService();
  const { review_id, project_id, escalation_id } = await aReview();
  const again = { project_id, kind: 'escalation', reason: 'r', due_in_ms: 1, payload: {} } as const;
  expect(await openReview(db, { ...again, escalation_id })).toMatchObject({ review_id });
  const reopening = { review_id, reason: 'still wrong', payload: { error: 'x' }, due_in_ms: 3_600_000 };
  for (const round of [1, 2, 3]) {
    const { version } = await read(review_id);
    await decide(caller(project_id), order(review_id, version));
    await delivery.settled();
    const opened = await reopenReview(db, { ...reopening, round });
    const repeated = await reopenReview(db, { ...reopening, round });
    expect(repeated).toEqual(opened);
    expect(opened === null).toBe(round === 3);
  }
  expect(sent.map(({ version }) => version)).toEqual([2, 4, 6]);
  expect(await read(review_id)).toMatchObject({ round: 3, state: 'resolved' });
});
