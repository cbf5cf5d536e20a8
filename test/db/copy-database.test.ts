import { afterEach, beforeEach, expect, test } from 'vitest';
import { insertAudit } from '../../src/db/access/audit.ts';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { copyDatabase, findFilledTables } from '../../src/db/copy-database.ts';
import { migrate } from '../../src/db/migrate.ts';
import { addListedParts, partsBetween } from '../../src/db/partitions.ts';
import { createTestDatabase, type TestDatabase, useDatabase } from '../support/database.ts';
import { anInstance, aRun } from '../support/factories.ts';

const source = useDatabase();
let target: TestDatabase;
let copy: Db;
beforeEach(async () => {
  target = await createTestDatabase();
  copy = connectDatabase(target.url, 2);
});
afterEach(async () => {
  await copy.destroy();
  await target.drop();
});

function copyAll(onTable: (copied: { table: string; rows: number }) => void = () => undefined) {
  return copyDatabase({ sourceUrl: source.url, targetUrl: target.url, onTable });
}

/** Every constraint, trigger, index and partition, as Postgres describes it. */
async function readRules(db: Db): Promise<unknown> {
  const { rows } = await db.raw(
    `select conrelid::regclass::text as of, conname as name, pg_get_constraintdef(oid) as text from pg_constraint where connamespace = 'public'::regnamespace
     union all select tgrelid::regclass::text, tgname, tgenabled::text from pg_trigger where not tgisinternal
     union all select tablename, indexname, indexdef from pg_indexes where schemaname = 'public'
     union all select inhparent::regclass::text, inhrelid::regclass::text, '' from pg_inherits
     order by 1, 2, 3`,
  );
  return rows;
}

test('every row, partition and sequence is copied, and the rules of the target are those from before', async () => {
  const { db } = source;
  const before = await readRules(copy);
  const { run_id, project_id } = await aRun(db);
  await anInstance(db);
  const job = { text: 'ä "quoted", \\back\\ {} (a,b) ? ', n: '1.10' };
  await db('run')
    .where({ run_id })
    .update({ labels: JSON.stringify({ odd: job.text }) });
  await insertAudit(db, { project_id, actor: 'key_a', action: 'key.created', subject: 'a', data: job });
  await db('run').where({ run_id }).update({ parent_run_id: run_id }); // a cycle
  const copied = await copyAll();
  for (const table of ['run', 'event', 'audit', 'instance', 'job', 'budget', 'callback_key', 'project']) {
    const rows = await db(table)
      .select(db.raw(`${table}::text as line`))
      .orderBy('line');
    expect(
      await copy(table)
        .select(copy.raw(`${table}::text as line`))
        .orderBy('line'),
    ).toEqual(rows);
    expect(copied.find((one) => one.table === table)?.rows).toBe(rows.length);
  }
  expect(await readRules(copy)).toEqual(before);
  await insertAudit(copy, { project_id, actor: 'key_a', action: 'key.created', subject: 'b', data: {} });
  expect(await copy('audit').orderBy('entry').pluck('subject')).toEqual(['a', 'b']);
  expect(await migrate(target.url)).toMatchObject({ instances: expect.any(Number) }); // another cluster's numbers
  expect(await findFilledTables(target.url)).toContain('run');
});

test('old rows come into partitions of their own', async () => {
  const { db } = source;
  const old = partsBetween('event', new Date('2025-01-06'), new Date('2025-01-07'));
  await db.transaction((trx) => addListedParts(trx, 'event', old));
  await copyAll();
  const { rows } = await copy.raw(`select to_regclass(?) is not null as is_there`, [
    old.map(({ name }) => name).join(),
  ]);
  expect(rows).toEqual([{ is_there: true }]);
});

test('a copy that breaks off leaves nothing, and can be repeated', async () => {
  await aRun(source.db);
  const breaks = () => {
    throw new Error('broken off');
  };
  await expect(copyAll(breaks)).rejects.toThrow('broken off');
  expect(await findFilledTables(target.url)).toEqual([]);
  expect((await copyAll()).find(({ table }) => table === 'run')?.rows).toBeGreaterThan(0);
});

test('a target with rows, or with other columns, is refused and keeps what it has', async () => {
  await copy.raw('alter table webhook add column note text');
  await expect(copyAll()).rejects.toThrow(/the table webhook differs/);
  await copy.raw('alter table webhook drop column note');
  const { run_id } = await aRun(copy);
  await expect(copyAll()).rejects.toThrow(
    /the target is not empty: definition, event, job, project, run hold rows/,
  );
  expect(await copy('run').pluck('run_id')).toEqual([run_id]);
});
