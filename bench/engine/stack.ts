/**
 * Everything that is measured, as separate processes: Postgres and Temporal as `npm start` runs them (durable),
 * Capstan's server and worker, those of another checkout, the bare workers, the rivals, the capability.
 */
import { join } from 'node:path';
import { describeServer, describeWorker } from '../../src/dev/service-processes.ts';
import type { ChildSpec } from '../../src/dev/supervisor/child-process.ts';
import { type Checkout, describeOther, sourceProgram, startOtherServer } from '../shared/other-checkout.ts';
import type { Place } from '../shared/run-bench.ts';
import { type Database, startDatabase } from '../shared/start-database.ts';
import { addSearchAttributes, createEnvironment, startTemporalServer } from '../shared/start-temporal.ts';
import { type BareName, bareWorkers } from './bare-side.ts';
import { findScript } from './bench-process.ts';
import type { Endpoints } from './capabilities.ts';
import { startCapability } from './capability-process.ts';
import { type DbosAddresses, startDbos } from './dbos-process.ts';
import { type RestateAddresses, startRestate } from './restate-processes.ts';
import type { SideName } from './side.ts';

/** How one checkout of Capstan is reached. */
export interface CapstanAddresses {
  readonly apiUrl: string;
  readonly apiKey: string;
  readonly databaseUrl: string;
  /** Names of its own processes. */
  readonly processes: readonly string[];
}

export interface Stack {
  readonly capstan: CapstanAddresses;
  /** Null where it takes no part, as the rivals. */
  readonly beside: CapstanAddresses | null;
  readonly temporalAddress: string;
  readonly endpoints: Endpoints;
  readonly restate: RestateAddresses | null;
  readonly dbos: DbosAddresses | null;
  /** Process ids by part. */
  processes(): ReadonlyMap<string, number>;
}

interface Base {
  readonly database: Database;
  readonly environment: NodeJS.ProcessEnv;
  /** Changes how the own server, the own worker and the bare ones are started. */
  readonly adapt: (spec: ChildSpec) => ChildSpec;
}

async function startCapstan(
  { supervisor, dataDir }: Place,
  { database: { databaseUrl, apiKey }, environment, adapt }: Base,
): Promise<CapstanAddresses> {
  const apiUrl = `http://127.0.0.1:${environment.PORT}`;
  await supervisor.start(adapt(describeServer({ dataDir, environment }, apiUrl)));
  await supervisor.start(adapt(describeWorker({ dataDir, environment })));
  return { apiUrl, apiKey, databaseUrl, processes: ['server', 'worker'] };
}

/** Checkouts that know these write no search attribute at all if one of them is missing, and would save the event. */
const formerSearchAttributes = { EscalationLevel: 'Int', CostUsd: 'Double' } as const;

async function startBeside(
  place: Place,
  base: Base & { readonly temporalAddress: string },
  checkout: Checkout,
): Promise<CapstanAddresses> {
  await addSearchAttributes(base.temporalAddress, formerSearchAttributes);
  const program = sourceProgram(checkout, 'server');
  const server = await startOtherServer(place, { ...base, checkout, program });
  const worker = describeWorker({ dataDir: place.dataDir, environment: server.environment });
  await place.supervisor.start(describeOther(worker, checkout, sourceProgram(checkout, 'worker')));
  const processes = ['server', 'worker'].map((name) => `${name} (${checkout.name})`);
  return { ...server, processes };
}

async function startBareWorker(
  { supervisor, dataDir }: Place,
  { environment, adapt, endpoints }: Base & { readonly endpoints: Endpoints },
  side: BareName,
): Promise<void> {
  const bare = { dataDir, environment: { ...environment, TASK_QUEUE: side } };
  await supervisor.start(
    adapt({
      ...describeWorker(bare),
      ...findScript('bare-worker.ts', JSON.stringify(endpoints)),
      name: bareWorkers[side],
      logFile: join(dataDir, 'logs', `${side}-worker.log`),
    }),
  );
}

interface StackOptions extends Partial<Pick<Base, 'adapt'>> {
  readonly beside?: Checkout | null;
}

/** Starts only those rivals that are among the names. @throws Error of the first part that does not start */
export async function startStack(
  place: Place,
  names: readonly SideName[],
  { beside = null, adapt = (spec) => spec }: StackOptions = {},
): Promise<Stack> {
  const [database, temporalAddress] = await Promise.all([startDatabase(place), startTemporalServer(place)]);
  const { databaseUrl } = database;
  const endpoints = await startCapability(place);
  const port = await place.nextPort();
  const environment = createEnvironment(place, { databaseUrl, temporalAddress, port });
  const base = { database, environment, adapt };
  const capstan = await startCapstan(place, base);
  await startBareWorker(place, { ...base, endpoints }, 'bare');
  if (names.includes('floor')) await startBareWorker(place, { ...base, endpoints }, 'floor');
  return {
    capstan,
    beside: beside === null ? null : await startBeside(place, { ...base, temporalAddress }, beside),
    temporalAddress,
    endpoints,
    restate: names.includes('restate') ? await startRestate(place, endpoints) : null,
    dbos: names.includes('dbos') ? await startDbos(place, { capstanUrl: databaseUrl, endpoints }) : null,
    processes: () => new Map(place.supervisor.processes().map(({ name, pid }) => [name, pid])),
  };
}
