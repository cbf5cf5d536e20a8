/**
 * Everything that is measured, as separate processes: Postgres and Temporal as `npm start` runs them (durable),
 * Capstan's server and worker, the bare worker, the capability.
 */
import { join } from 'node:path';
import { findProgram } from '../../src/dev/programs.ts';
import { describeServer, describeWorker } from '../../src/dev/service-processes.ts';
import type { Place } from '../shared/run-bench.ts';
import { type Database, startDatabase } from '../shared/start-database.ts';
import { createEnvironment, startTemporalServer } from '../shared/start-temporal.ts';
import { describeCapability } from './capability-process.ts';

export interface Stack extends Database {
  readonly apiUrl: string;
  readonly temporalAddress: string;
  readonly bareTaskQueue: string;
  /** Address of the capability. */
  readonly endpoint: string;
  /** Process ids by part. */
  processes(): ReadonlyMap<string, number>;
}

interface Ports {
  readonly api: number;
  readonly capability: number;
}

const startPrograms = async (
  { supervisor, dataDir }: Place,
  { api, capability }: Ports,
  { environment, bareTaskQueue }: { environment: NodeJS.ProcessEnv; bareTaskQueue: string },
): Promise<{ apiUrl: string; endpoint: string }> => {
  const apiUrl = `http://127.0.0.1:${api}`;
  const endpoint = `http://127.0.0.1:${capability}`;
  await supervisor.start(describeCapability({ dataDir, endpoint, port: capability }));
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
export const startStack = async (place: Place): Promise<Stack> => {
  const [database, temporalAddress] = await Promise.all([startDatabase(place), startTemporalServer(place)]);
  const ports = { api: await place.nextPort(), capability: await place.nextPort() };
  const ends = { databaseUrl: database.databaseUrl, temporalAddress, port: ports.api };
  const bareTaskQueue = 'bare';
  const environment = createEnvironment(place, ends);
  const started = await startPrograms(place, ports, { environment, bareTaskQueue });
  return {
    ...{ ...database, ...started, temporalAddress, bareTaskQueue },
    processes: () => new Map(place.supervisor.processes().map(({ name, pid }) => [name, pid])),
  };
};
