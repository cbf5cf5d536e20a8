import { afterAll, beforeAll, expect, it } from 'vitest';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { runPrepared } from '../../src/db/statements.ts';
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

async function readPid(): Promise<number> {
  const statement = { name: 'pid', text: 'select pg_backend_pid() as pid, $1::int as n', timeoutMs: 5_000 };
  const { rows } = await runPrepared<{ pid: number; n: number }>(db, { ...statement, values: [7] });
  const [row] = rows;
  expect(row?.n).toBe(7);
  return row?.pid ?? 0;
}

it('a connection serves many statements, also after an error of the database, and other queries', async () => {
  const pid = await readPid();
  const wrong = { name: 'wrong', text: 'select 1 / $1::int', values: [0], timeoutMs: 5_000 };
  await expect(runPrepared(db, wrong)).rejects.toMatchObject({ code: '22012' });
  expect(await readPid()).toBe(pid);
  const { rows } = await db.raw('select pg_backend_pid() as pid');
  expect(rows).toEqual([{ pid }]);
});

it('a connection whose prepared statement gets no answer in time is thrown away', async () => {
  const pid = await readPid();
  const slow = { name: 'slow', text: 'select pg_sleep($1)', values: [8], timeoutMs: 50 };
  await expect(runPrepared(db, slow)).rejects.toThrow('timeout');
  expect(await readPid()).not.toBe(pid);
});

it('a connection that the database has ended is thrown away, and its statement fails', async () => {
  const pid = await readPid();
  const own = { name: 'own', text: 'select pg_terminate_backend(pg_backend_pid())', values: [] };
  await expect(runPrepared(db, { ...own, timeoutMs: 5_000 })).rejects.toThrow();
  expect(await readPid()).not.toBe(pid);
});

it('inside of a transaction it is part of it', async () => {
  await db.raw('create table note (n int)');
  const statement = { name: 'note', text: 'insert into note values ($1)', values: [1] };
  const undone = db.transaction(async (trx) => {
    await runPrepared(trx, statement);
    throw new Error('undone');
  });
  await expect(undone).rejects.toThrow('undone');
  await db.transaction((trx) => runPrepared(trx, statement));
  expect(await db('note').select('n')).toEqual([{ n: 1 }]);
});
