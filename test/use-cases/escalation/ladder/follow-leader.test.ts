import { newLadder } from '@capstan/core/ladder/ladder';
import { createAttempt, startLadder } from '@capstan/core/ladder/machine';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { StepItemKey } from '../../../../src/db/attempt/attempt.ts';
import { connectDatabase, type Db } from '../../../../src/db/connect.ts';
import {
  type EscalationRow,
  insertEscalation,
  readEscalation,
} from '../../../../src/db/escalation/escalation.ts';
import { readUnixTime } from '../../../../src/db/escalation/escalation-transition.ts';
import { newId } from '../../../../src/parts/ids.ts';
import { waitForLeader } from '../../../../src/use-cases/escalation/ladder/learning.ts';
import { readLadder, storeLadder } from '../../../../src/use-cases/escalation/ladder/stored-ladder.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/database.ts';
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

async function fail(project_id: string, step: StepItemKey | null = null): Promise<string> {
  const escalation_id = newId('escalation');
  const attempt = createAttempt({ level: 0, attempted_at: 1, error: 'odd', fingerprint: 'f' });
  await insertEscalation(db, {
    escalation_id,
    project_id,
    job_type: 'summary',
    prompt: 'p',
    context: undefined,
    step,
    caller: step === null ? aCallingKey() : null,
    repo_context: '',
    signals: [],
    result_schema: null,
    previous_id: null,
    max_usd: null,
    escalation_level: 0,
    ...storeLadder(newLadder(startLadder({ start_level: 0, history: [attempt], advice: [] }))),
    fingerprint: 'f',
    model_spec: { level: 0, label: 'static template', capability: null, model: null },
  });
  return escalation_id;
}

/** How long the second of two waits before it looks again, when both have waited so long. */
async function delayAt(ageS: number): Promise<number | null> {
  const { project_id } = await aProject(db);
  const leader_id = await fail(project_id);
  const escalation_id = await fail(project_id);
  await db('escalation')
    .where({ project_id })
    .update({ created_at: db.raw(`clock_timestamp() - ? * interval '1 second'`, [ageS]) });
  const row = (await readEscalation(db, escalation_id)) as EscalationRow;
  const now = row.created_at.getTime() / 1_000 + ageS;
  const delay = await waitForLeader({ db }, { row, ladder: readLadder(row), now });
  const after = await readEscalation(db, escalation_id);
  expect(after?.leader_id).toBe(delay === null ? null : leader_id);
  return delay;
}

it.each([
  [0, 800, 1_200],
  [20, 4_000, 6_000],
  [500, 12_000, 15_000],
])('a follower of %i s looks again in %i to %i ms', async (ageS, least, most) => {
  const delay = await delayAt(ageS);
  expect(delay).toBeGreaterThanOrEqual(least);
  expect(delay).toBeLessThanOrEqual(most);
});

it('does not look at the same moment as the others', async () => {
  const delays = await Promise.all([1, 2, 3, 4].map(() => delayAt(20)));
  expect(new Set(delays).size).toBeGreaterThan(1);
});

it('continues by itself after ten minutes', async () => {
  expect(await delayAt(601)).toBeNull();
});

it('does not wait for a ladder that begins only when a paused run continues', async () => {
  const { project_id } = await aProject(db);
  const { run_id } = await aRun(db, { project_id });
  const leader = await fail(project_id, { run_id, step_id: 'a', item: 0 });
  const row = (await readEscalation(db, await fail(project_id))) as EscalationRow;
  const now = await readUnixTime(db);
  const look = () => waitForLeader({ db }, { row, ladder: readLadder(row), now });
  expect(await look()).not.toBeNull();
  await db('run').where({ run_id }).update({ state: 'paused' });
  expect(await look()).toBeNull();
  await db('escalation').where({ escalation_id: leader }).update({ transition: 1 });
  expect(await look()).not.toBeNull();
});
