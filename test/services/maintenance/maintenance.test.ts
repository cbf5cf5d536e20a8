import { pino } from 'pino';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { noMetrics } from '../../../src/core/telemetry/telemetry.ts';
import { connectDatabase, type Db } from '../../../src/db/connect.ts';
import { insertEscalation, readEscalation } from '../../../src/db/escalation/escalation.ts';
import { finishRun } from '../../../src/db/run/run.ts';
import { newId } from '../../../src/services/ids.ts';
import { createDuties, createMaintenance } from '../../../src/services/maintenance.ts';
import { createBudgetKeeper } from '../../../src/services/money/budget-keeper.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { aDeliveryCtx } from '../../support/delivery.ts';
import { aRun } from '../../support/factories.ts';
import { idleParts } from '../../support/maintenance.ts';
import { waitFor } from '../../support/wait.ts';

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
  });
  await finishRun(db, { run_id, state: 'cancelled', output: undefined, error: null, step_ids: ['a'] });
  const logger = pino({ level: 'silent' });
  const duties = createDuties(aDeliveryCtx(db), {
    ...idleParts,
    budgets: createBudgetKeeper({ db, logger, metrics: noMetrics }),
  });
  const maintenance = createMaintenance({ db, logger, intervalMs: 20, duties, promptDuties: [] });
  maintenance.start();
  try {
    const ended = await waitFor('the ladder to end', async () => {
      const row = await readEscalation(db, escalation_id);
      return row?.finished_at == null ? null : row;
    });
    expect(ended).toMatchObject({ state: 'cancelled', error: { code: 'escalation_cancelled' } });
  } finally {
    await maintenance.stop();
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
    duties: [
      { name: 'each', everyMs: 0, work: count('each') },
      { name: 'long', everyMs: 0, rests: 1_000_000, work: long },
    ],
    promptDuties: [],
  });
  maintenance.start();
  try {
    await waitFor('twenty rounds', () => rounds.each >= 20);
    expect(rounds.long).toBe(1);
  } finally {
    await maintenance.stop();
  }
});
