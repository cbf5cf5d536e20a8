import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectDatabase, type Db } from '../../../src/db/connect.ts';
import { createHealthService, type Readiness } from '../../../src/services/health/health-service.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
let ownDb: Db;
beforeAll(async () => {
  database = await createTestDatabase();
  ownDb = connectDatabase(database.url, 1);
});
afterAll(() => database.drop());

/** The timers of the answer are of this thread too: the earlier one goes off first, whatever else the machine does. */
function beforeProxyLeaves(answer: Promise<Readiness>): Promise<Readiness | 'too late'> {
  return Promise.race([answer, sleep(2_000, 'too late' as const, { ref: false })]);
}

test('a process is ready with its database; that Temporal is away is a detail', async () => {
  const { isReady } = createHealthService({ ownDb, workflows: { isReachable: async () => false } });
  expect(await isReady()).toEqual({
    ready: true,
    detail: { database: 'ok', temporal: 'does not answer' },
  });
});

test('Temporal that says nothing does not make the answer late: a proxy gives it two seconds', async () => {
  const prompt = { raw: async () => [] } as unknown as Db;
  const { isReady } = createHealthService({
    ownDb: prompt,
    workflows: { isReachable: () => new Promise(() => undefined) },
  });
  expect(await beforeProxyLeaves(isReady())).toEqual({
    ready: true,
    detail: { database: 'ok', temporal: 'does not answer' },
  });
});

test('a database that says nothing does not make the answer late either', async () => {
  const silent = { raw: () => new Promise(() => undefined) } as unknown as Db;
  const { isReady } = createHealthService({ ownDb: silent, workflows: { isReachable: async () => true } });
  expect(await beforeProxyLeaves(isReady())).toEqual({
    ready: false,
    detail: { database: 'does not answer', temporal: 'ok' },
  });
});

test('a process without its database is not ready', async () => {
  const { isReady } = createHealthService({ ownDb, workflows: { isReachable: async () => true } });
  await ownDb.destroy();
  expect(await isReady()).toEqual({
    ready: false,
    detail: { database: 'does not answer', temporal: 'ok' },
  });
});
