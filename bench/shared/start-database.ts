/** Postgres as `npm start` runs it (durable), with Capstan's tables, a project and a key. */
import { join } from 'node:path';
import { ensureDatabase, type PostgresServer, startPostgres } from '../../src/dev/postgres/server.ts';
import { createPartReport } from '../../src/dev/progress.ts';
import { prepareDatabase } from '../../src/use-cases/setup.ts';
import type { Place } from './run-bench.ts';

export interface Database {
  readonly server: PostgresServer;
  readonly databaseUrl: string;
  readonly apiKey: string;
  readonly projectId: string;
}

async function startServer(
  { supervisor, report, dataDir, cacheDir, nextPort }: Place,
  settings: PostgresSettings,
): Promise<PostgresServer> {
  const options = { dataDir, port: await nextPort(), ephemeral: false, cacheDir, settings };
  return startPostgres(supervisor, options, createPartReport(report, 'Postgres'));
}

type PostgresSettings = Readonly<Record<string, string>>;

/** Makes a database of this name. The server is started with the first one, with its settings beside the usual ones. */
export type AddDatabase = (name: string, settings?: PostgresSettings) => Promise<Database>;

export function createDatabases(place: Place): AddDatabase {
  let started: Promise<PostgresServer> | undefined;
  return async (name, settings = {}) => {
    started ??= startServer(place, settings);
    const server = await started;
    const databaseUrl = await ensureDatabase(server, name);
    const access = await prepareDatabase(databaseUrl, { apiKeyFile: join(place.dataDir, `${name}-api-key`) });
    return { server, databaseUrl, apiKey: access.api_key, projectId: access.project_id };
  };
}

export function startDatabase(place: Place): Promise<Database> {
  return createDatabases(place)('capstan');
}
