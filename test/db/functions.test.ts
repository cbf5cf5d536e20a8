import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Db } from '../../src/db/connect.ts';
import { migrate } from '../../src/db/migrate.ts';
import {
  createFunctions,
  createTriggerFunctions,
  type FunctionSet,
  listStaleFunctions,
  readFunctions,
  readFunctionText,
} from '../../src/db/sql/functions.ts';
import { useDatabase } from '../support/database.ts';
import { readSchemaText } from '../support/schema-text.ts';

const { db } = useDatabase();
const whole = useDatabase();

/** A version of Capstan with two functions: one answers with a word, the other calls it. */
function aVersion(schema: number, word: string, known = schema): FunctionSet {
  const texts = [
    `create or replace function ask() returns text language sql as $$ select answer() $$;\n`,
    `create or replace function answer() returns text language sql as $$ select '${word}?' $$;\n`,
  ];
  const read = (sql: string, at: number) =>
    readFunctionText(['ask', 'answer'][at] as string, `-- schema ${schema}\n\n${sql}`);
  return { texts: texts.map(read), schema: known };
}

async function ask(): Promise<string> {
  const { rows } = await db.raw<{ rows: [{ ask: string }] }>('select ask()');
  return rows[0].ask;
}

/** The functions that a piece of work creates, in this order. */
async function createdBy(on: Db, work: () => Promise<unknown>): Promise<string[]> {
  const created: string[] = [];
  const note = ({ sql }: { readonly sql: string }): void => {
    for (const [, name] of sql.matchAll(/^create or replace function (\w+)/gm)) created.push(name as string);
  };
  on.on('query', note);
  await work();
  on.off('query', note);
  return created;
}

describe('a function is created again when its text differs from the one in force', () => {
  beforeEach(async () => {
    await db('schema_function').delete();
    await createFunctions(db, aVersion(7, 'old'));
  });

  test('and nothing is written when none does', async () => {
    const { rows: before } = await db.raw('select xmin, * from schema_function order by name');
    expect(await createdBy(db, () => createFunctions(db, aVersion(7, 'old')))).toEqual([]);
    expect((await db.raw('select xmin, * from schema_function order by name')).rows).toEqual(before);
    expect(await listStaleFunctions(db, aVersion(7, 'old'))).toEqual([]);
  });

  test.each([
    ['of a newer schema', 8],
    ['of the same one', 7],
  ])('by a process %s, and only that function', async (_, schema) => {
    const { texts } = aVersion(7, 'old');
    const [same] = texts;
    const [, changed] = aVersion(schema, 'new').texts;
    const version = { texts: [same, changed], schema } as FunctionSet;
    expect(await listStaleFunctions(db, version)).toEqual(['answer']);
    expect(await createdBy(db, () => createFunctions(db, version))).toEqual(['answer']);
    expect(await ask()).toBe('new?');
    expect(await listStaleFunctions(db, version)).toEqual([]);
  });

  test('but by no older process, which creates nothing that it misses either', async () => {
    await createFunctions(db, aVersion(8, 'new'));
    await db('schema_function').where({ name: 'ask' }).delete();
    expect(await listStaleFunctions(db, aVersion(7, 'old'))).toEqual([]);
    expect(await createdBy(db, () => createFunctions(db, aVersion(7, 'old')))).toEqual([]);
    const older = {
      ...aVersion(7, 'old'),
      texts: [readFunctionText('triggers/late', '-- schema 7\nno SQL')],
    };
    await createTriggerFunctions(db, older);
    expect(await ask()).toBe('new?');
  });

  test('an older process knows of a newer one that has changed nothing but tables', async () => {
    await createFunctions(db, aVersion(7, 'old', 9));
    await createFunctions(db, aVersion(8, 'between'));
    expect(await ask()).toBe('old?');
  });

  test('a newer process continues where an older one has started meanwhile', async () => {
    await createFunctions(db, aVersion(8, 'new'));
    await createFunctions(db, aVersion(7, 'old'));
    await createFunctions(db, aVersion(9, 'newest'));
    expect(await ask()).toBe('newest?');
  });

  test('all together or none: a text that Postgres refuses leaves those in force', async () => {
    const { texts, schema } = aVersion(8, 'new');
    const broken = readFunctionText('broken', '-- schema 8\ncreate or replace function broken() returns');
    await expect(createFunctions(db, { texts: [...texts, broken], schema })).rejects.toThrow('syntax error');
    expect(await ask()).toBe('old?');
    expect(await listStaleFunctions(db, { texts, schema })).toEqual(['ask', 'answer']);
  });

  test('and waits for no transaction that has called it', async () => {
    const caller = await db.transaction();
    await caller.raw('select ask()');
    await createFunctions(db, aVersion(8, 'new'));
    expect(await ask()).toBe('new?');
    await caller.raw('select ask()');
    await caller.commit();
  });
});

test('a function of a trigger exists before the migration that names it; a changed one waits for it', async () => {
  const trigger = (name: string, schema: number, change: string) =>
    readFunctionText(
      `triggers/${name}`,
      `-- schema ${schema}\ncreate or replace function ${name}() returns trigger language plpgsql as $$
        begin new.note := '${change}'; return new; end $$;`,
    );
  const texts = [trigger('mark', 8, 'old')];
  await db('schema_function').delete();
  await createFunctions(db, { texts, schema: 8 });
  const later = { texts: [trigger('mark', 9, 'new'), trigger('mark_late', 9, 'late')], schema: 9 };
  expect(await createdBy(db, () => createTriggerFunctions(db, later))).toEqual(['mark_late']);
  await db.raw(`create table marked (note text);
    create trigger marked_late before insert on marked for each row execute function mark_late()`);
  await createFunctions(db, later);
  await db('marked').insert({ note: '' });
  expect(await db('marked').pluck('note')).toEqual(['late']);
  await db.raw('drop table marked; drop function mark, mark_late');
});

test('processes that start together create the functions that are missing once', async () => {
  await whole.db('schema_function').where({ name: 'claims' }).update({ sha256: 'of another text' });
  const { rows: before } = await whole.db.raw("select xmin from pg_proc where proname = 'claim_slots'");
  const schema = await readSchemaText(whole.db);
  await Promise.all(Array.from({ length: 4 }, () => migrate(whole.url)));
  const read =
    'select xmin, (select count(distinct xmin::text)::int from schema_function) as writers from pg_proc';
  const { rows } = await whole.db.raw(`${read} where proname = 'claim_slots'`);
  expect(rows[0].xmin).not.toBe(before[0].xmin);
  expect(rows[0].writers).toBe(1);
  expect(await readSchemaText(whole.db)).toBe(schema);
});

describe('the files of src/db/sql', () => {
  const own = readFunctions(1);
  const folder = fileURLToPath(new URL('../../src/db/sql', import.meta.url));

  test('are those of the package', () => {
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
      file.endsWith('.sql'),
    );
    expect(own.texts.map(({ name }) => `${name}.sql`)).toEqual(files.sort());
    for (const { name, sql } of own.texts) expect(sql).toBe(readFileSync(`${folder}/${name}.sql`, 'utf8'));
  });

  test('hold every function of a migrated database, and no other', async () => {
    const { rows } = await db.raw<{ rows: { name: string }[] }>(
      `select distinct proname as name from pg_proc where pronamespace = 'public'::regnamespace
       and proname not in ('ask', 'answer') order by 1`,
    );
    const written = own.texts.flatMap(({ sql }) => [...sql.matchAll(/^create or replace function (\w+)/gm)]);
    expect(rows.map(({ name }) => name)).toEqual(written.map(([, name]) => name).sort());
  });

  test('are accepted by Postgres one after the other, which reads their bodies too', async () => {
    await db.transaction(async (trx) => {
      await trx.raw('set local check_function_bodies = on');
      for (const { sql } of own.texts) await trx.raw(sql.replaceAll('?', '\\?'));
    });
  });

  test.each(['', 'create function f()', '-- schema\n', '-- schema 0\n', '-- schema 1.5\n', ' -- schema 1\n'])(
    'begin with a number: %j is refused',
    (sql) => {
      expect(() => readFunctionText('claims', sql)).toThrow(
        'claims.sql does not begin with "-- schema" and a number',
      );
    },
  );

  test('count as the newest schema if one of them is newer than the last migration', () => {
    const newest = Math.max(...own.texts.map(({ schema }) => schema));
    expect([readFunctions(newest).schema, readFunctions(newest + 3).schema]).toEqual([newest, newest + 3]);
    expect(readFunctions(0).schema).toBe(newest);
  });
});
