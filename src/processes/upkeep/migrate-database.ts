/** `capstan migrate`: reads the schema version of a database and migrates it to the newest. */
import { migrate } from '../../db/migrate.ts';
import { prepareDatabase } from '../../use-cases/setup.ts';

export { readSchemaState, type SchemaState } from '../../db/migrate.ts';

/** @param apiKeyFile receives a first admin key, with a project of its own; undefined: no key is made */
export async function migrateDatabase(databaseUrl: string, apiKeyFile: string | undefined): Promise<void> {
  if (apiKeyFile === undefined) await migrate(databaseUrl);
  else await prepareDatabase(databaseUrl, { apiKeyFile });
}
