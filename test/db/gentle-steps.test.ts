import { expect, test } from 'vitest';
import { holdLock } from '../../src/db/locks.ts';
import { migrate } from '../../src/db/migrate.ts';
import { addIndex, changeTables, fillInBatches } from '../../src/db/migrations/gentle-steps.ts';
import { useDatabase } from '../support/database.ts';
import { aRun } from '../support/factories.ts';
import { waitFor } from '../support/wait.ts';

const { db, url } = useDatabase(8);
const quick = { lockMs: 30, pauseMs: 20, tries: 100 };

async function isValid(name: string): Promise<boolean | undefined> {
  const { rows } = await db.raw('select indisvalid from pg_index where indexrelid = to_regclass(?)', [name]);
  return rows[0]?.indisvalid;
}

test('a column waits for its lock in turns, and others have theirs in between', async () => {
  const { run_id } = await aRun(db);
  const reader = await db.transaction();
  await reader('run').where({ run_id }).first();
  let isOver = false;
  const change = changeTables(db, ['alter table run add column if not exists note text'], quick).then(() => {
    isOver = true;
  });
  for (let n = 0; n < 10; n++) await db('run').where({ run_id }).update({ priority: 'batch' });
  expect(isOver).toBe(false);
  await reader.commit();
  await change;
  await changeTables(db, ['alter table run add column if not exists note text'], quick);
  expect(await db('run').first('note')).toEqual({ note: null });
});

test('a change that never gets its lock fails', async () => {
  const reader = await db.transaction();
  await reader('run').first();
  const change = changeTables(db, ['alter table run add column other text'], { ...quick, tries: 2 });
  await expect(change).rejects.toMatchObject({ code: '55P03' });
  await reader.rollback();
});

test('an index is made beside writers, and what an interrupted try has left is made again', async () => {
  const a = await aRun(db);
  const b = await aRun(db, { project_id: a.project_id });
  const index = { name: 'run_once', on: 'on run (project_id)', isUnique: true };
  await expect(addIndex(db, index, quick)).rejects.toMatchObject({ code: '23505' });
  expect(await isValid('run_once')).toBe(false);
  await db('run').where({ run_id: b.run_id }).delete();
  await addIndex(db, index, quick);
  expect(await isValid('run_once')).toBe(true);
  await addIndex(db, index, quick);
});

test('a column is filled in batches', async () => {
  for (let n = 0; n < 5; n++) await aRun(db);
  await db.raw('alter table run add column if not exists note text');
  const sizes: number[] = [];
  db.on('query-response', ({ command, rowCount }: { command?: string; rowCount?: number }) => {
    if (command === 'UPDATE') sizes.push(rowCount ?? 0);
  });
  const fill = `update run set note = 'x' where run_id in (select run_id from run where note is null limit ?)`;
  const filled = await fillInBatches(db, fill, 2);
  expect(sizes.every((size) => size <= 2)).toBe(true);
  expect(filled).toBeGreaterThanOrEqual(5);
  expect(await db('run').whereNull('note')).toEqual([]);
});

test('a process that waits for its turn to migrate does not delay an index that is being made', async () => {
  const lock = await holdLock(db, 'migration');
  const waiting = migrate(url);
  await waitFor('a process that waits', async () => {
    const { rows } = await db.raw(`select from pg_stat_activity where query like '%advisory_lock(%'
      and datname = current_database()
      and pid not in (select pid from pg_locks where locktype = 'advisory' union select pg_backend_pid())`);
    return rows.length > 0;
  });
  await addIndex(db, { name: 'run_beside', on: 'on run (version)' }, quick);
  await lock?.release();
  await waiting;
});
