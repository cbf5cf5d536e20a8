/**
 * Everything that is measured, as separate processes: Postgres and Temporal as `npm start` runs them (durable),
 * Capstan's server and worker, the bare worker, the rivals, the capability.
 */
import { join } from 'node:path';
import { describeServer, describeWorker } from '../../src/dev/service-processes.ts';
import type { Place } from '../shared/run-bench.ts';
import { type Database, startDatabase } from '../shared/start-database.ts';
import { createEnvironment, startTemporalServer } from '../shared/start-temporal.ts';
import { findScript } from './bench-process.ts';
import { startCapability } from './capability-process.ts';
import { type DbosAddresses, startDbos } from './dbos-process.ts';
import { type RestateAddresses, startRestate } from './restate-processes.ts';
import type { SideName } from './side.ts';

export interface Stack extends Database {
  readonly apiUrl: string;
  readonly temporalAddress: string;
  readonly bareTaskQueue: string;
  /** Address of the capability. */
  readonly endpoint: string;
  /** Null where they take no part. */
  readonly restate: RestateAddresses | null;
  readonly dbos: DbosAddresses | null;
  /** Process ids by part. */
  processes(): ReadonlyMap<string, number>;
}

const bareTaskQueue = 'bare';

interface Capstan {
  readonly environment: NodeJS.ProcessEnv;
  readonly apiUrl: string;
  readonly endpoint: string;
}

async function startTemporalSides(
  { supervisor, dataDir }: Place,
  { environment, apiUrl, endpoint }: Capstan,
): Promise<void> {
  const capstan = { dataDir, environment };
  await supervisor.start(describeServer(capstan, apiUrl));
  await supervisor.start(describeWorker(capstan));
  const bare = { dataDir, environment: { ...environment, TASK_QUEUE: bareTaskQueue } };
  await supervisor.start({
    ...describeWorker(bare),
    ...findScript('bare-worker.ts', endpoint),
    name: 'bare worker',
    logFile: join(dataDir, 'logs', 'bare-worker.log'),
  });
}

/** @throws Error of the first part that does not start */
export async function startStack(place: Place, names: readonly SideName[]): Promise<Stack> {
  const [database, temporalAddress] = await Promise.all([startDatabase(place), startTemporalServer(place)]);
  const { databaseUrl } = database;
  const endpoint = await startCapability(place);
  const port = await place.nextPort();
  const apiUrl = `http://127.0.0.1:${port}`;
  const environment = createEnvironment(place, { databaseUrl, temporalAddress, port });
  await startTemporalSides(place, { environment, apiUrl, endpoint });
  return {
    ...database,
    apiUrl,
    temporalAddress,
    bareTaskQueue,
    endpoint,
    restate: names.includes('restate') ? await startRestate(place, endpoint) : null,
    dbos: names.includes('dbos') ? await startDbos(place, { capstanUrl: databaseUrl, endpoint }) : null,
    processes: () => new Map(place.supervisor.processes().map(({ name, pid }) => [name, pid])),
  };
}
