/**
 * Postgres and Temporal as `npm start` runs them (durable) and Capstan's server, each a process that ends with this
 * one. The server starts once the data are in, for its maintenance would repair what is half filled.
 */
import { mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createTemporaryFolder } from '../../src/dev/data-folder.ts';
import { choosePort } from '../../src/dev/ports.ts';
import { ensureDatabase, startPostgres } from '../../src/dev/postgres/server.ts';
import { createPartReport, type Report } from '../../src/dev/progress.ts';
import { describeServer } from '../../src/dev/service-processes.ts';
import { createSupervisor } from '../../src/dev/supervisor/supervisor.ts';
import { embeddedTemporalEnvironment, withoutTemporal } from '../../src/dev/temporal/environment.ts';
import { startTemporal } from '../../src/dev/temporal/server.ts';
import { findCacheDir, findTemporal } from '../../src/dev/temporal/source.ts';
import { prepareDatabase } from '../../src/services/setup.ts';

export interface CostStack {
  readonly databaseUrl: string;
  readonly apiKey: string;
  readonly projectId: string;
  /** @returns the address of the API */
  startServer(): Promise<string>;
  stop(): Promise<void>;
}

const choosePorts = async () => {
  const taken = new Set<number>();
  const next = async (): Promise<number> => {
    const port = await choosePort([], taken);
    taken.add(port);
    return port;
  };
  return { postgres: await next(), temporal: await next(), temporalUi: await next(), api: await next() };
};

/** @throws Error of the first part that does not start */
export const startStack = async (report: Report): Promise<CostStack> => {
  const dataDir = createTemporaryFolder('capstan-bench-');
  const supervisor = createSupervisor({ report, temporaryFolder: dataDir });
  const cacheDir = findCacheDir(process.env, homedir());
  const ports = await choosePorts();
  const outside = withoutTemporal(process.env);

  const startDatabase = async () => {
    const options = { dataDir, port: ports.postgres, ephemeral: false, cacheDir };
    const server = await startPostgres(supervisor, options, createPartReport(report, 'Postgres'));
    const databaseUrl = await ensureDatabase(server, 'capstan');
    return { databaseUrl, ...(await prepareDatabase(databaseUrl, { apiKeyFile: join(dataDir, 'api-key') })) };
  };

  const startServer = async (databaseUrl: string): Promise<string> => {
    const found = await findTemporal(
      { cacheDir, environment: outside },
      createPartReport(report, 'Temporal'),
    );
    const temporalAddress = await startTemporal(supervisor, {
      ...{ dataDir, ephemeral: false, environment: outside, program: found.path },
      ...{ port: ports.temporal, uiPort: ports.temporalUi },
    });
    const mediaDir = join(dataDir, 'media');
    mkdirSync(mediaDir);
    const apiUrl = `http://127.0.0.1:${ports.api}`;
    const environment = {
      ...{ ...outside, ...embeddedTemporalEnvironment(temporalAddress, dataDir) },
      ...{ DATABASE_URL: databaseUrl, MEDIA_URL: pathToFileURL(mediaDir).href },
      ...{ HOST: '127.0.0.1', PORT: String(ports.api) },
    };
    await supervisor.start(describeServer({ dataDir, environment }, apiUrl));
    return apiUrl;
  };

  try {
    const { databaseUrl, api_key, project_id } = await startDatabase();
    return {
      ...{ databaseUrl, apiKey: api_key, projectId: project_id },
      startServer: () => startServer(databaseUrl),
      stop: () => supervisor.stop(),
    };
  } catch (error) {
    await supervisor.stop();
    throw error;
  }
};
