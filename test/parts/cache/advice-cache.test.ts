import { createHash, randomUUID } from 'node:crypto';
import { type CancelSignal, CancelSource } from '@capstan/core/cancellation';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { connectDatabase, type Db } from '../../../src/db/connect.ts';
import { type AdviceCache, createAdviceCache } from '../../../src/parts/cache/advice-cache.ts';
import { createKeyRenewer, type KeyRenewer } from '../../../src/parts/calls/open-calls.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { aCallingKey, aProject } from '../../support/factories.ts';
import { waitFor } from '../../support/wait.ts';

let database: TestDatabase;
let db: Db;
let cache: AdviceCache;
let keyRenewer: KeyRenewer;
beforeAll(async () => {
  database = await createTestDatabase();
  db = connectDatabase(database.url, 4);
  keyRenewer = createKeyRenewer({ db, logger: pino({ level: 'silent' }) });
  cache = createAdviceCache({ db, keyRenewer });
});
afterAll(async () => {
  keyRenewer.close();
  await db.destroy();
  await database.drop();
});

const advice = { from_level: 1, instructions: 'i', reasoning: '', suggested_executor_level: 1 };

async function aQuestion() {
  const key = aCallingKey({ project_id: (await aProject(db)).project_id });
  const digest = createHash('sha256').update(randomUUID()).digest();
  let answer: () => void = () => undefined;
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const seen: CancelSignal[] = [];
  const ask = (signal: CancelSignal) =>
    cache.answer({ key, digest, leftUsd: null, signal }, async (all) => {
      seen.push(all);
      await answered;
      if (all.aborted) throw new Error('everybody has left');
      return { advice, isKept: true };
    });
  const asked = () => waitFor('the question to be asked', () => seen[0]);
  return { ask, asked, seen, answer };
}

it('continues as long as one of its callers remains, and ends with the last', async () => {
  const { ask, asked, answer } = await aQuestion();
  const [first, second] = [new CancelSource(), new CancelSource()];
  const answers = Promise.allSettled([ask(first), ask(second)]);
  const all = await asked();
  first.abort('cancelled');
  expect(all.aborted).toBe(false);
  second.abort('abandoned');
  expect(all).toMatchObject({ aborted: true, reason: 'abandoned' });
  answer();
  expect((await answers).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
});

it('asks again for a caller that comes after all have left', async () => {
  const { ask, asked, seen, answer } = await aQuestion();
  const first = new CancelSource();
  const left = Promise.allSettled([ask(first)]);
  await asked();
  first.abort('cancelled');
  const later = ask(new CancelSource());
  answer();
  await left;
  expect(await later).toEqual(advice);
  expect(seen.map(({ aborted }) => aborted)).toEqual([true, false]);
});
