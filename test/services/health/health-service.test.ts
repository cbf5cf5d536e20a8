import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectDatabase, type Db } from '../../../src/db/connect.ts';
import { createHealthService } from '../../../src/services/health/health-service.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
let ownDb: Db;
beforeAll(async () => {
  database = await createTestDatabase();
  ownDb = connectDatabase(database.url, 1);
});
afterAll(() => database.drop());

test('a process is ready with its database; that Temporal is away is a detail', async () => {
  const { isReady } = createHealthService({ ownDb, workflows: { isReachable: async () => false } });
  expect(await isReady()).toEqual({
    ready: true,
    detail: { database: 'ok', temporal: 'does not answer' },
  });
});

test('Temporal that says nothing does not make the answer late: a proxy gives it two seconds', async () => {
  const { isReady } = createHealthService({
    ownDb,
    workflows: { isReachable: () => new Promise(() => undefined) },
  });
  const from = performance.now();
  expect(await isReady()).toEqual({
    ready: true,
    detail: { database: 'ok', temporal: 'does not answer' },
  });
  expect(performance.now() - from).toBeLessThan(1_500);
});

test('a process without its database is not ready', async () => {
  const { isReady } = createHealthService({ ownDb, workflows: { isReachable: async () => true } });
  await ownDb.destroy();
  expect(await isReady()).toEqual({
    ready: false,
    detail: { database: 'does not answer', temporal: 'ok' },
  });
});
