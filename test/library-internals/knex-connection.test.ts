import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { discardConnection, readPoolState } from '../../src/library-internals.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
let db: Db;
beforeAll(async () => {
  database = await createTestDatabase();
  db = connectDatabase(database.url, 1);
});
afterAll(async () => {
  await db.destroy();
  await database.drop();
});

/** @returns the connection that the pool of one lends next, after `use` */
async function borrow(use: (connection: object) => void): Promise<object> {
  const connection = await db.client.acquireConnection();
  use(connection);
  await db.client.releaseConnection(connection);
  return connection;
}

test('the pool lends a connection again, and one that was discarded never', async () => {
  const first = await borrow(() => undefined);
  expect(await borrow(() => undefined)).toBe(first);
  await borrow((connection) => discardConnection(connection, new Error('of no use')));
  expect(await borrow(() => undefined)).not.toBe(first);
});

test('the pool reports how many connections are used and free, and how many callers wait', async () => {
  const connection = await db.client.acquireConnection();
  expect(readPoolState(db.client)).toEqual({ used: 1, free: 0, pending: 0 });
  const waiting = db.client.acquireConnection();
  expect(readPoolState(db.client)).toEqual({ used: 1, free: 0, pending: 1 });
  await db.client.releaseConnection(connection);
  await db.client.releaseConnection(await waiting);
  expect(readPoolState(db.client)).toEqual({ used: 0, free: 1, pending: 0 });
});
