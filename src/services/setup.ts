import { connectDatabase } from '../db/connect.ts';
import { migrate } from '../db/migrate.ts';
import { type DefaultAccess, ensureDefaultProject } from './access/bootstrap-access.ts';

/** Brings an existing database to the newest schema, with a project and a key to begin with. Repeatable. */
export async function prepareDatabase(
  databaseUrl: string,
  options: { apiKeyFile: string; keyEnvironment?: string },
): Promise<DefaultAccess> {
  await migrate(databaseUrl);
  const db = connectDatabase(databaseUrl, 2);
  try {
    return await ensureDefaultProject(db, options);
  } finally {
    await db.destroy();
  }
}
