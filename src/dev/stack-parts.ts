/**
 * Starts the parts of the stack, each as soon as the parts that it needs are ready:
 *
 * - Postgres with its tables, Temporal, and in a checkout the bundle of the workflows;
 * - then server and worker, which need all of them;
 * - then the sample capabilities, which need the server alone.
 *
 * In a checkout the page is built meanwhile, which no part waits for. Services that the environment names are used
 * instead of started.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { StackFile } from '@capstan/core/contracts/stack';
import { completeDatabaseUrl } from '../config.ts';
import { prepareDatabase } from '../use-cases/setup.ts';
import { describeSample, sampleNames } from './capabilities.ts';
import { buildConsole } from './console.ts';
import { type PortPlan, type StackPorts, startOnPorts } from './ports.ts';
import { ensureDatabase, startPostgres } from './postgres/server.ts';
import { findProgram, runProgram, runsFromSources } from './programs.ts';
import { createPartReport, type Report } from './progress.ts';
import { describeServer, describeWorker } from './service-processes.ts';
import type { ChildSpec } from './supervisor/child-process.ts';
import type { Supervisor } from './supervisor/supervisor.ts';
import {
  embeddedTemporalEnvironment,
  hasExternalTemporal,
  readTemporalConnection,
  withoutTemporal,
} from './temporal/environment.ts';
import { startTemporal } from './temporal/server.ts';
import { findTemporal } from './temporal/source.ts';

export interface StackPlace {
  readonly dataDir: string;
  readonly ephemeral: boolean;
  readonly samples: boolean;
  readonly environment: NodeJS.ProcessEnv;
  readonly report: Report;
  readonly supervisor: Supervisor;
  readonly plan: PortPlan;
  /** Called before each start of the server. */
  readonly setApiUrl: (url: string) => void;
  readonly cacheDir: string;
  /** Aborts when the stack ends. */
  readonly ending: AbortSignal;
}

async function setupDatabase(place: StackPlace): Promise<string> {
  const report = createPartReport(place.report, 'Postgres');
  const { DATABASE_URL, DATABASE_PASSWORD_FILE } = place.environment;
  if (DATABASE_URL) {
    report('ready', 'yours, from DATABASE_URL');
    return completeDatabaseUrl(DATABASE_URL, DATABASE_PASSWORD_FILE);
  }
  const server = await startOnPorts(place.plan, ['postgres'], ({ postgres: port }) =>
    startPostgres(place.supervisor, { ...place, port }, report),
  );
  const url = await ensureDatabase(server, 'capstan');
  const data = server.isNew ? 'new data' : 'data of the last start';
  report('ready', `${server.version} at 127.0.0.1:${place.plan.ports().postgres}, from npm, ${data}`);
  return url;
}

interface TemporalSetup {
  readonly address: string;
  readonly uiUrl: string | null;
  /** Environment of the processes that use it. */
  readonly environment: NodeJS.ProcessEnv;
}

async function setupTemporal(place: StackPlace): Promise<TemporalSetup> {
  const report = createPartReport(place.report, 'Temporal');
  const { environment, plan, supervisor, dataDir, ephemeral } = place;
  if (hasExternalTemporal(environment)) {
    const address = readTemporalConnection(environment).connectionOptions.address ?? 'localhost:7233';
    report('ready', `yours at ${address}, from the environment`);
    return { address, uiUrl: environment.TEMPORAL_UI_URL ?? null, environment };
  }
  const program = await findTemporal(place, report);
  report('working', 'starting');
  const options = { dataDir, ephemeral, environment, program: program.path };
  const address = await startOnPorts(plan, ['temporal', 'temporal_ui'], ({ temporal, temporal_ui }) =>
    startTemporal(supervisor, { ...options, port: temporal, uiPort: temporal_ui }),
  );
  report('ready', `server ${program.version} at ${address}, ${program.origin}`);
  const variables = embeddedTemporalEnvironment(address, dataDir);
  return {
    address,
    uiUrl: `http://127.0.0.1:${plan.ports().temporal_ui}`,
    environment: { ...withoutTemporal(environment), ...variables },
  };
}

function setupMedia({ environment, dataDir }: StackPlace): string {
  if (environment.MEDIA_URL) return environment.MEDIA_URL;
  const folder = join(dataDir, 'media');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return pathToFileURL(folder).href;
}

async function setupTables({ report, dataDir }: StackPlace, databaseUrl: string) {
  const part = createPartReport(report, 'database');
  part('working', 'migrating');
  const prepared = await prepareDatabase(databaseUrl, { apiKeyFile: join(dataDir, 'api-key') });
  part('ready', `schema up to date, project ${prepared.project_id}`);
  return prepared;
}

const bundleLimitMs = 300_000;

/** A package contains the bundle; from sources, a worker would make it while all wait. @returns settings of the worker */
async function setupWorkflows({ report, environment, dataDir }: StackPlace): Promise<NodeJS.ProcessEnv> {
  if (environment.WORKFLOW_BUNDLE || !runsFromSources) return {};
  const part = createPartReport(report, 'workflows');
  part('working', 'bundling');
  const file = join(dataDir, 'workflow-bundle.js');
  const { command, args } = findProgram('processes/write-workflow-bundle');
  await runProgram(command, [...args, file], { environment, timeoutMs: bundleLimitMs });
  part('ready', 'bundled from their sources');
  return { WORKFLOW_BUNDLE: file };
}

interface Services {
  readonly apiUrl: string;
  /** Resolves when the worker is ready. */
  readonly worker: Promise<unknown>;
}

/**
 * Starts server and worker, which both know the address of the server. @returns when the server is ready
 * @throws Error when the server does not start; the worker is stopped then
 */
async function startServices(
  { supervisor, report, dataDir, setApiUrl }: StackPlace,
  { api }: StackPorts,
  shared: NodeJS.ProcessEnv,
): Promise<Services> {
  const apiUrl = `http://127.0.0.1:${api}`;
  setApiUrl(apiUrl);
  const environment = { ...shared, HOST: '127.0.0.1', PORT: String(api), PUBLIC_URL: apiUrl };
  const options = { dataDir, environment };
  const start = async (name: string, detail: string, spec: ChildSpec) => {
    const part = createPartReport(report, name);
    part('working', 'starting');
    const stop = await supervisor.start(spec);
    part('ready', detail);
    return stop;
  };
  const worker = start('worker', 'polls the task queue', describeWorker(options));
  // Its failure is for the caller, who has it when the server is ready.
  worker.catch(() => undefined);
  try {
    await start('server', apiUrl, describeServer(options, apiUrl));
  } catch (error) {
    await worker.then(
      (stop) => stop(),
      () => undefined,
    );
    throw error;
  }
  return { apiUrl, worker };
}

/** A sample that cannot start, such as without ffmpeg, does not stop the rest. */
async function startSamples(
  { supervisor, report, dataDir, environment }: StackPlace,
  info: Pick<StackFile, 'api_url' | 'api_key' | 'media_url'>,
): Promise<void> {
  const options = {
    dataDir,
    environment,
    apiUrl: info.api_url,
    apiKey: info.api_key,
    mediaUrl: info.media_url,
  };
  const start = async (name: (typeof sampleNames)[number]) => {
    const part = createPartReport(report, name);
    const spec = describeSample(name, options);
    if (spec === null) return part('note', 'this sample capability is not part of the installation');
    part('working', 'starting');
    await supervisor.start(spec).then(
      () => part('ready', 'sample capability, registered'),
      (error: Error) => part('failed', error.message),
    );
  };
  await Promise.all(sampleNames.map(start));
}

/** @throws Error of the first part that does not start */
export async function startParts(place: StackPlace): Promise<Omit<StackFile, 'pids'>> {
  void buildConsole(createPartReport(place.report, 'console'), { signal: place.ending });
  const [databaseUrl, temporal, workflows] = await Promise.all([
    setupDatabase(place).then(async (url) => ({ url, ...(await setupTables(place, url)) })),
    setupTemporal(place),
    setupWorkflows(place),
  ]);
  const mediaUrl = setupMedia(place);
  const services = {
    ...temporal.environment,
    ...workflows,
    DATABASE_URL: databaseUrl.url,
    MEDIA_URL: mediaUrl,
    RATE_LIMITS: place.environment.RATE_LIMITS ?? (place.ephemeral ? 'off' : 'on'),
    ...(temporal.uiUrl === null ? {} : { TEMPORAL_UI_URL: temporal.uiUrl }),
  };
  const { apiUrl, worker } = await startOnPorts(place.plan, ['api'], (ports) =>
    startServices(place, ports, services),
  );
  const access = { api_url: apiUrl, api_key: databaseUrl.api_key, media_url: mediaUrl };
  await Promise.all([worker, place.samples ? startSamples(place, access) : undefined]);
  return {
    ...access,
    project_id: databaseUrl.project_id,
    console_url: `${apiUrl}/ui/`,
    temporal_address: temporal.address,
    temporal_ui_url: temporal.uiUrl,
    database_url: databaseUrl.url,
  };
}
