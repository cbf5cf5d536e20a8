import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { createHealthQuestions, type Readiness, readReadiness } from '../../src/parts/health.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

function readiness(
  parts: Parameters<typeof createHealthQuestions>[0],
  now = () => performance.now(),
): () => Promise<Readiness> {
  const health = createHealthQuestions(parts, now);
  return () => readReadiness({ health });
}

let database: TestDatabase;
let healthDb: Db;
beforeAll(async () => {
  database = await createTestDatabase();
  healthDb = connectDatabase(database.url, 1);
});
afterAll(() => database.drop());

/** The timers of the answer are of this thread too: the earlier one goes off first, whatever else the machine does. */
function beforeProxyLeaves(answer: Promise<Readiness>): Promise<Readiness | 'too late'> {
  return Promise.race([answer, sleep(2_000, 'too late' as const, { ref: false })]);
}

test('a process is ready with its database; that Temporal is away is a detail', async () => {
  const isReady = readiness({ healthDb, workflows: { isReachable: async () => false } });
  expect(await isReady()).toEqual({
    ready: true,
    detail: { database: 'ok', temporal: 'does not answer' },
  });
});

test('a silent Temporal does not make the answer late: a proxy gives it two seconds', async () => {
  const prompt = { raw: async () => [] } as unknown as Db;
  const isReady = readiness({
    healthDb: prompt,
    workflows: { isReachable: () => new Promise(() => undefined) },
  });
  expect(await beforeProxyLeaves(isReady())).toEqual({
    ready: true,
    detail: { database: 'ok', temporal: 'does not answer' },
  });
});

test('a silent database does not make the answer late either', async () => {
  const silent = { raw: () => new Promise(() => undefined) } as unknown as Db;
  const isReady = readiness({ healthDb: silent, workflows: { isReachable: async () => true } });
  expect(await beforeProxyLeaves(isReady())).toEqual({
    ready: false,
    detail: { database: 'does not answer', temporal: 'ok' },
  });
});

test('the database and Temporal get one question a second, however often readiness is asked', async () => {
  let nowMs = 0;
  const asked = { database: 0, temporal: 0 };
  healthDb.on('query', () => {
    asked.database++;
  });
  const isReachable = async (): Promise<boolean> => {
    asked.temporal++;
    return true;
  };
  const isReady = readiness({ healthDb, workflows: { isReachable } }, () => nowMs);
  const askOften = async (): Promise<void> => {
    const answers = await Promise.all(Array.from({ length: 100 }, isReady));
    expect(new Set(answers.map(({ ready }) => ready))).toEqual(new Set([true]));
  };
  await askOften();
  nowMs = 999;
  await askOften();
  expect(asked).toEqual({ database: 1, temporal: 1 });
  nowMs = 1_000;
  await askOften();
  expect(asked).toEqual({ database: 2, temporal: 2 });
});

test('a question that is open is not asked again, and the next answer is a new one', async () => {
  let nowMs = 0;
  const answers: ((isUp: boolean) => void)[] = [];
  const isReachable = (): Promise<boolean> => new Promise((resolve) => answers.push(resolve));
  const isReady = readiness({ healthDb, workflows: { isReachable } }, () => nowMs);
  expect((await isReady()).detail.temporal).toBe('does not answer');
  nowMs = 60_000;
  const second = isReady();
  answers[0]?.(true);
  expect((await second).detail.temporal).toBe('ok');
  expect(answers).toHaveLength(1);
  const third = isReady();
  answers[1]?.(false);
  expect((await third).detail.temporal).toBe('does not answer');
});

test('a process without its database is not ready', async () => {
  const isReady = readiness({ healthDb, workflows: { isReachable: async () => true } });
  await healthDb.destroy();
  expect(await isReady()).toEqual({
    ready: false,
    detail: { database: 'does not answer', temporal: 'ok' },
  });
});
