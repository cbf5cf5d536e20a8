/** What `capstan migrate` does: how far the schema of a database is, and bringing it to the newest. */
import { migrate } from '../db/migrate.ts';
import { prepareDatabase } from '../services/setup.ts';

export { readSchemaState, type SchemaState } from '../db/migrate.ts';

/** @param apiKeyFile where a first admin key is left, with a project of its own; undefined: none is made */
export async function migrateDatabase(databaseUrl: string, apiKeyFile: string | undefined): Promise<void> {
  if (apiKeyFile === undefined) await migrate(databaseUrl);
  else await prepareDatabase(databaseUrl, { apiKeyFile });
}
