/** Postgres as `npm start` runs it (durable), with Capstan's tables, a project and a key. */
import { join } from 'node:path';
import { ensureDatabase, type PostgresServer, startPostgres } from '../../src/dev/postgres/server.ts';
import { createPartReport } from '../../src/dev/progress.ts';
import { prepareDatabase } from '../../src/services/setup.ts';
import type { Place } from './run-bench.ts';

export interface Database {
  readonly server: PostgresServer;
  readonly databaseUrl: string;
  readonly apiKey: string;
  readonly projectId: string;
}

export async function startDatabase(place: Place): Promise<Database> {
  const { supervisor, report, dataDir, cacheDir } = place;
  const options = { dataDir, port: await place.nextPort(), ephemeral: false, cacheDir };
  const server = await startPostgres(supervisor, options, createPartReport(report, 'Postgres'));
  const databaseUrl = await ensureDatabase(server, 'capstan');
  const access = await prepareDatabase(databaseUrl, { apiKeyFile: join(dataDir, 'api-key') });
  return { server, databaseUrl, apiKey: access.api_key, projectId: access.project_id };
}
