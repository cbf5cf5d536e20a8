import { noMetrics } from '@capstan/core/telemetry/telemetry';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { insertEscalation, readEscalation } from '../../src/db/escalation/escalation.ts';
import { finishRun } from '../../src/db/run/run.ts';
import { createBudgetKeeper } from '../../src/parts/budget-keeper.ts';
import { newId } from '../../src/parts/ids.ts';
import { createMaintenance } from '../../src/parts/maintenance.ts';
import { createDuties } from '../../src/use-cases/maintenance.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { aDeliveryCtx } from '../support/delivery.ts';
import { aRun } from '../support/factories.ts';
import { idleParts } from '../support/maintenance.ts';
import { waitFor } from '../support/wait.ts';

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

it('ends at once the ladder that a dead worker opened for a run that is over', async () => {
  const { run_id, project_id } = await aRun(db);
  const escalation_id = newId('escalation');
  await insertEscalation(db, {
    escalation_id,
    project_id,
    job_type: 'concat',
    prompt: 'p',
    context: undefined,
    ladder: {},
    repo_context: '',
    signals: [],
    result_schema: null,
    previous_id: null,
    max_usd: null,
    escalation_level: 0,
    escalation_history: [],
    escalation_advice: [],
    fingerprint: 'f',
    model_spec: { level: 0, label: 'static template', capability: null, model: null },
    step: { run_id, step_id: 'a', item: 0 },
    caller: null,
  });
  await finishRun(db, { run_id, state: 'cancelled', output: undefined, error: null, step_ids: ['a'] });
  const logger = pino({ level: 'silent' });
  const duties = createDuties(aDeliveryCtx(db), {
    ...idleParts,
    budgets: createBudgetKeeper({ db, logger, metrics: noMetrics }),
  });
  const maintenance = createMaintenance({ db, logger, intervalMs: 20, duties });
  maintenance.start();
  try {
    const ended = await waitFor('the ladder to end', async () => {
      const row = await readEscalation(db, escalation_id);
      return row?.finished_at == null ? null : row;
    });
    expect(ended).toMatchObject({ state: 'cancelled', error: { code: 'escalation_cancelled' } });
  } finally {
    await maintenance.close();
  }
});

/** Rows of each table that age alone deletes: two that are past it, and one that is not. */
async function answersOfAges({ project_id, run_id }: { project_id: string; run_id: string }): Promise<void> {
  const ages: readonly [string, number][] = [
    ['a', 30 * 3_600_000],
    ['b', 25 * 3_600_000],
    ['c', -3_600_000],
  ];
  for (const [key, ageMs] of ages) {
    const at = new Date(Date.now() - ageMs);
    const sha256 = Buffer.alloc(32, key);
    const stored = { stored_at: at, expires_at: at };
    const answer = { request: 'POST /v1/exec', key, body_sha256: sha256, status: 200, answer: '{}' };
    await db('idempotency').insert({ project_id, ...answer, created_at: at });
    await db('advice_answer').insert({ project_id, request_sha256: sha256, answer: '{}', created_at: at });
    const call = { attempt_id: key, instance_id: 'i', endpoint: 'http://i', cost_nano: 0, output: '{}' };
    await db('cached_answer').insert({ project_id, key: sha256, capability: 'c', ...call, ...stored });
    const step = { run_id, step_id: 'a', item: 0, pipeline: 'p', capability: 'c', led_at: at };
    await db('cached_result').insert({ project_id, key: sha256, ...step, ...stored });
  }
}

const agedTables = ['idempotency', 'advice_answer', 'cached_answer', 'cached_result'];

it('deletes every kind of answer that is too old, and no other', async () => {
  await answersOfAges(await aRun(db));
  const logger = pino({ level: 'silent' });
  const budgets = createBudgetKeeper({ db, logger, metrics: noMetrics });
  const duties = createDuties(aDeliveryCtx(db), { ...idleParts, budgets });
  const maintenance = createMaintenance({ db, logger, intervalMs: 5, duties });
  maintenance.start();
  try {
    const counts = async (): Promise<unknown[]> =>
      Promise.all(agedTables.map(async (table) => (await db(table).select()).length));
    await waitFor('one row of each table', async () => (await counts()).every((count) => count === 1));
  } finally {
    await maintenance.close();
  }
});

it('rests as long as the duty asks for, by the time that it took', async () => {
  const took: number[] = [];
  let rounds = 0;
  const work = async (): Promise<number> => {
    rounds += 1;
    return 0;
  };
  const maintenance = createMaintenance({
    db,
    logger: pino({ level: 'silent' }),
    intervalMs: 1,
    duties: {
      soon: { everyMs: 3_600_000, restMs: (ms) => took.push(ms) && 0, work },
      later: { everyMs: 0, restMs: () => 3_600_000, work: async () => (await work()) + 1 },
    },
  });
  maintenance.start();
  try {
    await waitFor('twenty rounds', () => took.length >= 20);
    expect(took.every((ms) => ms >= 0)).toBe(true);
    expect(rounds - took.length).toBeLessThanOrEqual(2); // the one that rests, and one in flight
  } finally {
    await maintenance.close();
  }
});

it('rests in proportion after a duty that took long, and not after others', async () => {
  const rounds = { each: 0, long: 0 };
  const count = (name: keyof typeof rounds) => async (): Promise<number> => {
    rounds[name] += 1;
    return 0;
  };
  const long = async (): Promise<number> => {
    await count('long')();
    const began = rounds.each;
    await waitFor('rounds of the other', () => rounds.each >= began + 3);
    throw new Error('a statement took too long'); // what fails has taken its time too
  };
  const maintenance = createMaintenance({
    db,
    logger: pino({ level: 'silent' }),
    intervalMs: 1,
    duties: {
      each: { everyMs: 0, work: count('each') },
      long: { everyMs: 0, rests: 1_000_000, work: long },
    },
  });
  maintenance.start();
  try {
    await waitFor('twenty rounds', () => rounds.each >= 20);
    expect(rounds.long).toBe(1);
  } finally {
    await maintenance.close();
  }
});
