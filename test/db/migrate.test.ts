import { expect, test } from 'vitest';
import { migrate } from '../../src/db/migrate.ts';
import { migrationNames, useDatabase } from '../support/database.ts';
import { readSchemaText } from '../support/schema-text.ts';

const { db, url } = useDatabase();
const empty = useDatabase();

/** As a process of a later version leaves the database behind. */
async function migrateFurther(floor: number): Promise<void> {
  await db('schema_migration').insert({ name: '9007-of-later', batch: 9_007, migration_time: new Date() });
  await db('schema_floor').update({ migration: floor });
}

test('a process starts with a newer schema, and fails when that is too far ahead', async () => {
  const schema = await readSchemaText(db);
  await migrateFurther(1);
  await migrate(url);
  expect(await readSchemaText(db)).toBe(schema);
  await migrateFurther(9_006);
  await expect(migrate(url)).rejects.toThrow(
    `needs a process that knows migration 9006, and this one knows migrations up to ${Number.parseInt(migrationNames().at(-1) ?? '', 10)}: start a newer version`,
  );
});

test('processes that start together on an empty database create the schema once', async () => {
  await empty.db.raw('drop schema public cascade; create schema public');
  await Promise.all(Array.from({ length: 4 }, () => migrate(empty.url)));
  const names: unknown[] = await empty.db('schema_migration').pluck('name');
  expect(names).toEqual(migrationNames());
});
