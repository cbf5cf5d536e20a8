/**
 * Two real Temporal servers on one Postgres, on addresses of their own (127.0.0.1, 127.0.0.2), each with all services.
 * The first is started alone: of two that make the first entries of an empty database together, one dies.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { ensureDatabase, type PostgresServer } from '../../src/dev/postgres/server.ts';
import { ownServerSettings } from '../../src/dev/temporal/server.ts';
import { runCommand } from '../package/run-command.ts';
import type { ClusterPlace } from './place.ts';
import type { ClusterPrograms } from './programs.ts';

export const nodeAddresses = ['127.0.0.1', '127.0.0.2'] as const;
export const namespace = 'capstan';
const retentionMs = 7 * 86_400_000;

function toYaml(values: Readonly<Record<string, unknown>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}:\n  - value: ${value}\n`)
    .join('');
}

function databaseWords(server: PostgresServer, database: string): string[] {
  const { hostname, port, username, password } = new URL(server.url);
  const login = ['--ep', hostname, '-p', port, '-u', username, '--pw', password];
  return ['--plugin', 'postgres12_pgx', ...login, '--db', database];
}

async function makeSchema(sql: string, server: PostgresServer, folder: string): Promise<void> {
  for (const [database, schema] of [
    ['temporal', 'postgresql/v12/temporal'],
    ['temporal_visibility', 'postgresql/v12/visibility'],
  ] as const) {
    await ensureDatabase(server, database);
    const words = [sql, ...databaseWords(server, database)];
    await runCommand([...words, 'setup-schema', '-v', '0.0'], { cwd: folder });
    await runCommand([...words, 'update-schema', '--schema-name', schema], { cwd: folder });
  }
}

function settingsOf(address: string, { ports, folder }: ClusterPlace, server: PostgresServer) {
  const { username, password } = new URL(server.url);
  const numbers = {
    DB_PORT: ports.postgres,
    // For ever: runs could not be found again with another number.
    NUM_HISTORY_SHARDS: 512,
    SQL_MAX_CONNS: 10,
    SQL_VIS_MAX_CONNS: 5,
    FRONTEND_GRPC_PORT: ports.frontend,
    FRONTEND_HTTP_PORT: ports.frontendHttp,
    FRONTEND_MEMBERSHIP_PORT: ports.frontendMembership,
    HISTORY_GRPC_PORT: ports.history,
    HISTORY_MEMBERSHIP_PORT: ports.historyMembership,
    MATCHING_GRPC_PORT: ports.matching,
    MATCHING_MEMBERSHIP_PORT: ports.matchingMembership,
    WORKER_GRPC_PORT: ports.system,
    WORKER_MEMBERSHIP_PORT: ports.systemMembership,
  };
  return {
    ...Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, String(value)])),
    PATH: process.env.PATH,
    DB: 'postgres12_pgx',
    POSTGRES_SEEDS: '127.0.0.1',
    POSTGRES_USER: username,
    POSTGRES_PWD: password,
    BIND_ON_IP: address,
    TEMPORAL_BROADCAST_ADDRESS: address,
    PUBLIC_FRONTEND_ADDRESS: `${address}:${ports.frontend}`,
    DYNAMIC_CONFIG_FILE_PATH: join(folder, 'temporal-dynamic.yaml'),
    LOG_LEVEL: 'error',
  };
}

async function answers(address: string): Promise<boolean> {
  const connection = await Connection.connect({ address, connectTimeout: 2_000 });
  try {
    await connection.workflowService.listNamespaces({ pageSize: 1 });
    return true;
  } finally {
    await connection.close();
  }
}

async function startNode(index: 0 | 1, place: ClusterPlace, program: string, server: PostgresServer) {
  const address = nodeAddresses[index];
  const name = `temporal-${index + 1}`;
  await place.start({
    name,
    command: program,
    args: ['--allow-no-auth', 'start'],
    cwd: place.folder,
    env: settingsOf(address, place, server),
    account: null,
    logFile: join(place.folder, 'logs', `${name}.log`),
    stopSignal: 'SIGTERM',
    stopGraceMs: 20_000,
    readyTimeoutMs: 120_000,
    isReady: () => answers(`${address}:${place.ports.frontend}`),
  });
}

async function registerNamespace(address: string): Promise<void> {
  const connection = await Connection.connect({ address, connectTimeout: 5_000 });
  try {
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: msToTs(retentionMs),
    });
  } finally {
    await connection.close();
  }
}

/** Resolves when both answer and the namespace is registered. */
export async function startTemporalNodes(
  place: ClusterPlace,
  { temporalServer, temporalSql }: ClusterPrograms,
  server: PostgresServer,
): Promise<void> {
  await writeFile(join(place.folder, 'temporal-dynamic.yaml'), toYaml(ownServerSettings));
  await makeSchema(temporalSql, server, place.folder);
  await startNode(0, place, temporalServer, server);
  await registerNamespace(`${nodeAddresses[0]}:${place.ports.frontend}`);
  await startNode(1, place, temporalServer, server);
}
