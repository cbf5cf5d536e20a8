import { expect, test } from 'vitest';
import { useDatabase } from '../support/database.ts';
import { readSchemaText } from '../support/schema-text.ts';

const { db } = useDatabase();

test('a migrated database has the schema of schema.sql, which `npm run schema` writes', async () => {
  await expect(await readSchemaText(db)).toMatchFileSnapshot('schema.sql');
});
