/**
 * Everything that is measured, as separate processes: Postgres and Temporal as `npm start` runs them (durable),
 * Capstan's server and worker, the bare worker, the capability. All of it ends with this process, also when it
 * is killed.
 */
import { mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createTemporaryFolder } from '../../src/dev/data-folder.ts';
import { choosePort } from '../../src/dev/ports.ts';
import { ensureDatabase, startPostgres } from '../../src/dev/postgres/server.ts';
import { findProgram } from '../../src/dev/programs.ts';
import { createPartReport, type Report } from '../../src/dev/progress.ts';
import { describeServer, describeWorker } from '../../src/dev/service-processes.ts';
import { createSupervisor, type Supervisor } from '../../src/dev/supervisor/supervisor.ts';
import { embeddedTemporalEnvironment, withoutTemporal } from '../../src/dev/temporal/environment.ts';
import { startTemporal } from '../../src/dev/temporal/server.ts';
import { findCacheDir, findTemporal } from '../../src/dev/temporal/source.ts';
import { prepareDatabase } from '../../src/services/setup.ts';
import { describeCapability } from './capability-process.ts';

export interface Stack {
  readonly apiUrl: string;
  readonly apiKey: string;
  readonly databaseUrl: string;
  readonly temporalAddress: string;
  readonly bareTaskQueue: string;
  readonly projectId: string;
  /** Address of the capability. */
  readonly endpoint: string;
  /** Process ids by part. */
  processes(): ReadonlyMap<string, number>;
  stop(): Promise<void>;
}

const choosePorts = async () => {
  const taken = new Set<number>();
  const next = async (): Promise<number> => {
    const port = await choosePort([], taken);
    taken.add(port);
    return port;
  };
  const [postgres, temporal, temporalUi, api] = [await next(), await next(), await next(), await next()];
  return { postgres, temporal, temporalUi, api, capability: await next() };
};

type Ports = Awaited<ReturnType<typeof choosePorts>>;

interface Place {
  readonly supervisor: Supervisor;
  readonly report: Report;
  readonly dataDir: string;
  readonly ports: Ports;
}

const startDatabase = async ({ supervisor, report, dataDir, ports }: Place) => {
  const cacheDir = findCacheDir(process.env, homedir());
  const options = { dataDir, port: ports.postgres, ephemeral: false, cacheDir };
  const server = await startPostgres(supervisor, options, createPartReport(report, 'Postgres'));
  const databaseUrl = await ensureDatabase(server, 'capstan');
  return { databaseUrl, ...(await prepareDatabase(databaseUrl, { apiKeyFile: join(dataDir, 'api-key') })) };
};

const startTemporalServer = async ({ supervisor, report, dataDir, ports }: Place): Promise<string> => {
  const environment = withoutTemporal(process.env);
  const cacheDir = findCacheDir(process.env, homedir());
  const { path } = await findTemporal({ cacheDir, environment }, createPartReport(report, 'Temporal'));
  const options = { dataDir, ephemeral: false, environment, program: path };
  return startTemporal(supervisor, { ...options, port: ports.temporal, uiPort: ports.temporalUi });
};

const startPrograms = async (
  { supervisor, dataDir, ports }: Place,
  environment: NodeJS.ProcessEnv,
  bareTaskQueue: string,
): Promise<{ apiUrl: string; endpoint: string }> => {
  const apiUrl = `http://127.0.0.1:${ports.api}`;
  const endpoint = `http://127.0.0.1:${ports.capability}`;
  await supervisor.start(describeCapability({ dataDir, endpoint, port: ports.capability }));
  const capstan = { dataDir, environment };
  await supervisor.start(describeServer(capstan, apiUrl));
  await supervisor.start(describeWorker(capstan));
  const bare = { dataDir, environment: { ...environment, TASK_QUEUE: bareTaskQueue } };
  const program = findProgram('../bench/engine/bare-worker');
  await supervisor.start({
    ...describeWorker(bare),
    ...{ command: program.command, args: [...program.args, endpoint] },
    name: 'bare worker',
    logFile: join(dataDir, 'logs', 'bare-worker.log'),
  });
  return { apiUrl, endpoint };
};

/** @throws Error of the first part that does not start */
export const startStack = async (report: Report): Promise<Stack> => {
  const dataDir = createTemporaryFolder('capstan-bench-');
  const supervisor = createSupervisor({ report, temporaryFolder: dataDir });
  try {
    const place = { supervisor, report, dataDir, ports: await choosePorts() };
    const [database, temporalAddress] = await Promise.all([startDatabase(place), startTemporalServer(place)]);
    const mediaDir = join(dataDir, 'media');
    mkdirSync(mediaDir);
    const environment = {
      ...withoutTemporal(process.env),
      ...embeddedTemporalEnvironment(temporalAddress, dataDir),
      DATABASE_URL: database.databaseUrl,
      MEDIA_URL: pathToFileURL(mediaDir).href,
      HOST: '127.0.0.1',
      PORT: String(place.ports.api),
    };
    const bareTaskQueue = 'bare';
    const started = await startPrograms(place, environment, bareTaskQueue);
    return {
      ...{ ...started, temporalAddress, bareTaskQueue, databaseUrl: database.databaseUrl },
      ...{ apiKey: database.api_key, projectId: database.project_id },
      processes: () => new Map(supervisor.processes().map(({ name, pid }) => [name, pid])),
      stop: () => supervisor.stop(),
    };
  } catch (error) {
    await supervisor.stop();
    throw error;
  }
};
