/** What is asked of a server all of whose connections to the database are in use. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { noMaintenance, readJson, startTestApi, type TestApi } from '../support/api.ts';
import { countWaiting } from '../support/locks.ts';
import { waitFor } from '../support/wait.ts';

const pool = 2;

let api: TestApi;
beforeAll(async () => {
  // No maintenance: it would take one of the connections.
  api = await startTestApi({ DATABASE_POOL: pool, ...noMaintenance });
});
afterAll(() => api.close());

test('/readyz answers “ready” while every connection is busy, so that a proxy keeps the server', async () => {
  const held = await api.db.transaction();
  await held.raw('lock table schedule in access exclusive mode');
  const requests = Array.from({ length: pool + 1 }, () => api.call('/v1/schedules'));
  await waitFor('all connections to wait', async () => (await countWaiting(api.db)) === pool);
  const answers = await Promise.all(Array.from({ length: 20 }, () => readJson(api.call('/readyz'))));
  expect(await countWaiting(api.db)).toBe(pool);
  await held.commit();
  for (const answer of answers) {
    expect(answer).toEqual([200, { ready: true, detail: expect.objectContaining({ database: 'ok' }) }]);
  }
  expect((await Promise.all(requests)).map(({ status }) => status)).toEqual([200, 200, 200]);
});
