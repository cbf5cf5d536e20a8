/**
 * A cluster on one machine, of parts that are each a process of their own: Postgres, two Temporal nodes, an S3 server,
 * HAProxy, and two servers and two workers out of an installed package. A part that dies is started again, as an
 * init system would do it.
 */
import { createTemporaryFolder } from '../../src/dev/data-folder.ts';
import { ensureDatabase, startPostgres } from '../../src/dev/postgres/server.ts';
import { createPartReport, type Report } from '../../src/dev/progress.ts';
import type { ChildSpec } from '../../src/dev/supervisor/child-process.ts';
import { createSupervisor, type Supervisor } from '../../src/dev/supervisor/supervisor.ts';
import { waitFor } from '../../test/support/wait.ts';
import { answers } from './answers.ts';
import { startServers, startWorkers } from './capstan-processes.ts';
import { startHaproxy } from './haproxy.ts';
import { installCapstan, prepareAccess } from './install.ts';
import { startMediaStore } from './media-store.ts';
import type { ClusterPlace } from './place.ts';
import { chooseClusterPorts } from './ports.ts';
import { findClusterPrograms } from './programs.ts';
import { namespace, startTemporalNodes } from './temporal-nodes.ts';

export interface Cluster {
  readonly folder: string;
  /** Of the proxy. */
  readonly apiUrl: string;
  readonly key: string;
  readonly databaseUrl: string;
  /** Of the proxy before both frontends. */
  readonly temporalAddress: string;
  readonly namespace: string;
  readonly mediaUrl: string;
  /** Where Prometheus finds each server and worker. */
  readonly metricsUrls: readonly string[];
  /** In the order of their starts. */
  readonly parts: readonly string[];
  /** Process ids of the parts that run now. */
  pids(): ReadonlyMap<string, number>;
  /** Ends one part and resolves when its process is gone; another takes its place by itself. @throws Error where it does not run */
  kill(part: string, signal: NodeJS.Signals): Promise<void>;
  /** Stops one part for a while with SIGSTOP, or continues it with SIGCONT. */
  send(part: string, signal: 'SIGSTOP' | 'SIGCONT'): void;
  /** Resolves when a process of this part is ready. */
  ready(part: string): Promise<void>;
  stop(): Promise<void>;
}

export interface ClusterOptions {
  readonly report: Report;
  /** Default 2, at most 4. */
  readonly servers?: number;
  readonly workers?: number;
  /** A tarball of the package; without one this checkout is packed. */
  readonly tarball?: string;
  /** Stops a running start; after it, use `stop`. */
  readonly signal?: AbortSignal;
  /** Settings that all servers and workers have. */
  readonly settings?: NodeJS.ProcessEnv;
  /** Puts something between Postgres and all servers and workers. Takes and gives back `host:port`. */
  readonly beforePostgres?: (address: string) => Promise<string>;
}

type Facts = Omit<Cluster, 'parts' | 'pids' | 'kill' | 'send' | 'ready' | 'stop'>;

function listMetrics({ ports, servers, workers }: ClusterPlace): string[] {
  const own = [...ports.serverMetrics.slice(0, servers), ...ports.workerMetrics.slice(0, workers)];
  return own.map((port) => `http://127.0.0.1:${port}/metrics`);
}

/** @returns the database as servers and workers reach it */
async function toDatabaseUrl(direct: string, { beforePostgres }: ClusterOptions): Promise<string> {
  const url = new URL(direct);
  if (beforePostgres !== undefined) url.host = await beforePostgres(url.host);
  return url.href;
}

async function startParts(place: ClusterPlace, options: ClusterOptions): Promise<Facts> {
  const { folder, ports, supervisor, report } = place;
  const programs = await findClusterPrograms();
  const installed = installCapstan(folder, createPartReport(report, 'package'), options.tarball);
  const postgres = { dataDir: folder, cacheDir: folder, ephemeral: true, port: ports.postgres };
  const server = await startPostgres(supervisor, postgres, createPartReport(report, 'postgres'));
  const databaseUrl = await ensureDatabase(server, 'capstan');
  await startTemporalNodes(place, programs, server);
  await startHaproxy(place, programs.haproxy);
  const media = await startMediaStore(place, programs.versitygw);
  const installation = await installed;
  const temporalAddress = `127.0.0.1:${ports.temporal}`;
  const apiUrl = `http://127.0.0.1:${ports.api}`;
  const environment = {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    DATABASE_URL: await toDatabaseUrl(databaseUrl, options),
    TEMPORAL_ADDRESS: temporalAddress,
    TEMPORAL_NAMESPACE: namespace,
    PUBLIC_URL: apiUrl,
    RATE_LIMITS: 'off',
    ...media.environment,
    ...options.settings,
  };
  const access = await prepareAccess(installation, environment, folder);
  const processes = { installation, environment, temporal: { address: temporalAddress, namespace } };
  await Promise.all([startServers(place, processes), startWorkers(place, processes)]);
  await waitFor('the proxy to see a server', () => answers(`${apiUrl}/readyz`), readyPatienceMs);
  const { mediaUrl } = media;
  const metricsUrls = listMetrics(place);
  return { metricsUrls, folder, apiUrl, databaseUrl, temporalAddress, namespace, mediaUrl, ...access };
}

function findPid(supervisor: Supervisor, part: string): number | undefined {
  return supervisor.processes().find(({ name }) => name.toLowerCase() === part)?.pid;
}

function requirePid(supervisor: Supervisor, part: string): number {
  const pid = findPid(supervisor, part);
  if (pid !== undefined) return pid;
  const names = supervisor.processes().map(({ name }) => name.toLowerCase());
  throw new Error(`"${part}" does not run now; these do: ${names.join(', ')}`);
}

const gonePatienceMs = 60_000;
const readyPatienceMs = 120_000;

function rejectOnAbort(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    const refuse = () => reject(new Error('the start was interrupted'));
    if (signal?.aborted) refuse();
    signal?.addEventListener('abort', refuse, { once: true });
  });
}

/** Keeps how each part is asked whether it is ready, for when it was killed. */
function remembering(supervisor: Supervisor, specs: Map<string, ChildSpec>): Supervisor {
  const start: Supervisor['start'] = (spec) => {
    specs.set(spec.name.toLowerCase(), spec);
    return supervisor.start(spec);
  };
  return Object.assign({}, supervisor, { start });
}

/** What may be done to the parts that run. */
function controlsOf(supervisor: Supervisor, specs: ReadonlyMap<string, ChildSpec>) {
  return {
    pids: () => new Map(supervisor.processes().map(({ name, pid }) => [name.toLowerCase(), pid])),
    kill: async (part: string, signal: NodeJS.Signals): Promise<void> => {
      const pid = requirePid(supervisor, part);
      process.kill(-pid, signal);
      await waitFor(`the end of ${part}`, () => findPid(supervisor, part) !== pid, gonePatienceMs);
    },
    send: (part: string, signal: 'SIGSTOP' | 'SIGCONT'): void => {
      process.kill(-requirePid(supervisor, part), signal);
    },
    ready: async (part: string): Promise<void> => {
      const isReady = async (): Promise<boolean> => {
        const pid = findPid(supervisor, part);
        const spec = specs.get(part);
        if (pid === undefined) return false;
        return spec === undefined || spec.isReady({ pid, startedAt: new Date(0) }).catch(() => false);
      };
      await waitFor(`${part} to be ready`, isReady, readyPatienceMs);
    },
  };
}

/**
 * Resolves when all of it is ready.
 * @throws Error that names the part that did not start, with the end of its log; nothing is left running then
 */
export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const folder = createTemporaryFolder('capstan-cluster-');
  const specs = new Map<string, ChildSpec>();
  const supervisor = remembering(
    createSupervisor({ report: options.report, temporaryFolder: folder }),
    specs,
  );
  const start = async (spec: ChildSpec): Promise<void> => {
    const report = createPartReport(options.report, spec.name);
    report('working', 'starting');
    await supervisor.start(spec);
    report('ready', `log at ${spec.logFile}`);
  };
  try {
    const ports = await chooseClusterPorts();
    const { report, servers = 2, workers = 2 } = options;
    const place = { folder, ports, supervisor, start, report, servers, workers };
    const facts = await Promise.race([startParts(place, options), rejectOnAbort(options.signal)]);
    const parts = supervisor.processes().map(({ name }) => name.toLowerCase());
    return { ...facts, parts, ...controlsOf(supervisor, specs), stop: () => supervisor.stop() };
  } catch (error) {
    await supervisor.stop();
    throw error;
  }
}
