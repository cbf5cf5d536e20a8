/** Starts Postgres as a supervised child that listens on 127.0.0.1 only. */
import { join } from 'node:path';
import pg from 'pg';
import type { PartReport } from '../progress.ts';
import type { Supervisor } from '../supervisor/supervisor.ts';
import { type Cluster, ensureCluster, removeStaleLock } from './cluster.ts';
import { chooseAccount, findPrograms } from './programs.ts';

export const sharedFolder = '/var/lib/capstan';

export interface PostgresOptions {
  readonly dataDir: string;
  readonly port: number;
  readonly ephemeral: boolean;
  /** Folder for a copy of the programs when the account cannot run them in place. */
  readonly cacheDir: string;
  /** Makes no data where there are none. */
  readonly mustExist?: boolean;
  /** Beside those that it always has. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface PostgresServer {
  /** The address of the maintenance database `postgres`. */
  readonly url: string;
  readonly version: string;
  readonly isNew: boolean;
}

function databaseUrl(password: string, port: number, database: string): string {
  return `postgres://capstan:${password}@127.0.0.1:${port}/${database}`;
}

/** Without fsync, a killed server keeps all data; only a power failure does not. */
function settings({ port, ephemeral, settings: more }: PostgresOptions): Record<string, string> {
  return {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    max_connections: '200',
    shared_buffers: '128MB',
    log_timezone: 'UTC',
    timezone: 'UTC',
    ...(ephemeral ? { fsync: 'off', full_page_writes: 'off' } : {}),
    ...more,
  };
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('select 1');
    return true;
  } finally {
    await client.end();
  }
}

async function launch(
  supervisor: Supervisor,
  options: PostgresOptions,
  { cluster, postgres, url }: { cluster: Cluster; postgres: string; url: string },
): Promise<void> {
  const flags = Object.entries(settings(options)).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  await supervisor.start({
    name: 'Postgres',
    command: postgres,
    args: ['-D', cluster.folder, ...flags],
    cwd: cluster.folder,
    env: { TZ: 'UTC', LC_ALL: 'C' },
    account: chooseAccount(),
    logFile: join(options.dataDir, 'logs', 'postgres.log'),
    // A fast shutdown: connections are closed, data are complete.
    stopSignal: 'SIGINT',
    stopGraceMs: 15_000,
    readyTimeoutMs: 60_000,
    ports: [options.port],
    prepare: () => removeStaleLock(cluster.folder),
    isReady: () => answers(url),
  });
}

/** Resolves when it answers queries. @throws Error with the end of the server's log */
export async function startPostgres(
  supervisor: Supervisor,
  options: PostgresOptions,
  report: PartReport,
): Promise<PostgresServer> {
  const account = chooseAccount();
  const programs = await findPrograms(account, account === null ? options.cacheDir : sharedFolder);
  if (programs.copiedTo !== null) report('note', `programs copied to ${programs.copiedTo}`);
  report('working', 'preparing data');
  const cluster = await ensureCluster({ ...options, account, programs, sharedFolder });
  if (cluster.movedTo !== null) {
    report('note', `uid ${account?.uid} cannot enter ${options.dataDir}; its data are in ${cluster.movedTo}`);
  }
  report('working', 'starting');
  const url = databaseUrl(cluster.password, options.port, 'postgres');
  await launch(supervisor, options, { cluster, postgres: programs.postgres, url });
  return { url, version: programs.version, isNew: cluster.isNew };
}

/** The address of one of its databases, which may not exist. */
export function databaseOf({ url }: PostgresServer, name: string): string {
  const address = new URL(url);
  address.pathname = `/${name}`;
  return address.href;
}

/** Creates the database if it does not exist. @returns its URL */
export async function ensureDatabase(server: PostgresServer, name: string): Promise<string> {
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  try {
    const { rowCount } = await client.query('select 1 from pg_database where datname = $1', [name]);
    if (rowCount === 0) await client.query(`create database ${client.escapeIdentifier(name)}`);
  } finally {
    await client.end();
  }
  return databaseOf(server, name);
}
