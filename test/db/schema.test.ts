import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Db } from '../../src/db/connect.ts';
import { firstSchema } from '../../src/db/migrations/0001-create-schema.ts';
import { useDatabase } from '../support/database.ts';
import { readSchemaText } from '../support/schema-text.ts';
import { listTables } from '../support/tables.ts';
import { createFromTexts } from '../support/texts-in-force.ts';

const { db } = useDatabase();
const fresh = useDatabase();

/** The rows that every database begins with; `cluster` gets its row from the process that migrates. */
async function readFirstRows(database: Db): Promise<Record<string, unknown>> {
  const tables = (await listTables(database)).filter((name) => !/^(schema_migration.*|cluster)$/.test(name));
  const rows = await Promise.all(tables.map((name) => database(name).select()));
  return Object.fromEntries(tables.map((name, at) => [name, rows[at]]));
}

test('a migrated database has the schema of schema.sql, which `npm run schema` writes', async () => {
  await expect(await readSchemaText(db)).toMatchFileSnapshot('schema.sql');
});

test('migrations arrive at the schema and the first rows of the texts in force', async () => {
  await fresh.db.raw('drop schema public cascade; create schema public');
  await createFromTexts(fresh.db);
  expect(await readSchemaText(db)).toBe(await readSchemaText(fresh.db));
  expect(await readFirstRows(db)).toEqual(await readFirstRows(fresh.db));
});

test('the text of the first migration is the one that databases were made of', () => {
  expect(createHash('sha256').update(firstSchema).digest('hex')).toBe(
    '231d7cfff9ca244d45808f6f197e8185adfafbaa3fc4881cda15ae33ec066508',
  );
});
