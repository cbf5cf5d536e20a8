/** The processes of the page, each started as the page's units and commands start it. */
import { chown, mkdir, readFile, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import pg from 'pg';
import { chooseAccount, findPrograms } from '../../src/dev/postgres/programs.ts';
import type { ChildSpec } from '../../src/dev/supervisor/child-process.ts';
import type { Supervisor } from '../../src/dev/supervisor/supervisor.ts';
import { answers } from '../cluster/answers.ts';
import { runCommand } from '../package/run-command.ts';
import { addresses, password } from './page.ts';

export interface Trial {
  readonly root: string;
  readonly supervisor: Supervisor;
}

type Part = Pick<ChildSpec, 'name' | 'command' | 'args' | 'env' | 'isReady'> & Partial<ChildSpec>;

async function start({ root, supervisor }: Trial, part: Part): Promise<void> {
  await supervisor.start({
    cwd: root,
    account: null,
    logFile: join(root, 'logs', `${part.name}.log`),
    stopSignal: 'SIGTERM',
    stopGraceMs: 20_000,
    readyTimeoutMs: 90_000,
    ...part,
  });
}

async function isTaken(host: string, port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(true));
    server.listen(port, host, () => server.close(() => resolve(false)));
  });
}

/** @throws Error with those that another process has */
export async function checkPorts(): Promise<void> {
  const { proxy, machines, postgres, nodes, capability } = addresses;
  const wanted = [
    [postgres, 5432],
    [proxy, 443],
    [proxy, 7233],
    [capability, 8101],
    ...machines.flatMap((host) => [7400, 9464, 9465].map((port) => [host, port])),
    ...nodes.flatMap((host) => [7233, 7234, 7235, 7239, 6933, 6934, 6935, 6939].map((port) => [host, port])),
  ] as [string, number][];
  const found = await Promise.all(wanted.map(([host, port]) => isTaken(host, port)));
  const taken = wanted.filter((_, index) => found[index]).map(([host, port]) => `${host}:${port}`);
  if (taken.length > 0) throw new Error(`other processes have the ports ${taken.join(', ')}`);
}

const administrator = `postgres://postgres:${password}@${addresses.postgres}:5432/postgres`;

export async function startPostgres(trial: Trial): Promise<void> {
  const account = chooseAccount();
  const programs = await findPrograms(account, '/var/lib/capstan');
  const folder = join(trial.root, 'postgres');
  await mkdir(folder);
  const passwordFile = join(folder, 'password');
  await writeFile(passwordFile, password);
  if (account !== null) {
    await chown(folder, account.uid, account.gid);
    await chown(passwordFile, account.uid, account.gid);
  }
  const data = join(folder, 'data');
  const login = ['--username=postgres', '--auth=scram-sha-256', `--pwfile=${passwordFile}`];
  const make = ['-D', data, ...login, '--encoding=UTF8', '--locale=C', '--no-sync'];
  const identity =
    account === null ? [] : ['setpriv', `--reuid=${account.uid}`, `--regid=${account.gid}`, '--clear-groups'];
  await runCommand([...identity, programs.initdb, ...make], { cwd: folder });
  await start(trial, {
    name: 'postgres',
    command: programs.postgres,
    args: ['-D', data, '-h', addresses.postgres, '-p', '5432', '-k', '', '-c', 'max_connections=300', '-F'],
    cwd: folder,
    env: { LC_ALL: 'C', TZ: 'UTC' },
    account,
    stopSignal: 'SIGINT',
    isReady: async () => {
      await query('select 1');
      return true;
    },
  });
}

/** As the administrator. */
export async function query(sql: string, database = 'postgres'): Promise<readonly Record<string, unknown>[]> {
  const url = new URL(administrator);
  url.pathname = `/${database}`;
  const client = new pg.Client({ connectionString: url.href });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

/** @param line the command of the page */
export async function startTemporalNode(trial: Trial, line: string, env: NodeJS.ProcessEnv): Promise<void> {
  const [command = '', ...args] = line.replace(/#.*/, '').trim().split(/\s+/);
  const address = `${env.BIND_ON_IP}:7233`;
  await start(trial, {
    name: `temporal-${env.BIND_ON_IP}`,
    command,
    args,
    env,
    isReady: async () => {
      const connection = await Connection.connect({ address, connectTimeout: 2_000 });
      await connection.workflowService.listNamespaces({ pageSize: 1 }).finally(() => connection.close());
      return true;
    },
  });
}

async function accepts(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host, () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

export async function startProxy(trial: Trial, haproxy: string, configuration: string): Promise<void> {
  const file = join(trial.root, 'etc/haproxy/haproxy.cfg');
  await writeFile(file, configuration);
  await start(trial, {
    name: 'haproxy',
    command: haproxy,
    args: ['-db', '-f', file],
    env: { PATH: process.env.PATH },
    isReady: () => accepts(addresses.proxy, 443),
  });
}

/** As the unit of that name does. */
export async function startCapstan(trial: Trial, name: 'server' | 'worker', env: NodeJS.ProcessEnv) {
  const program = join(trial.root, 'opt/capstan/node_modules/capstan/bin/capstan.mjs');
  await start(trial, {
    name: `${name}-${env.METRICS_HOST}`,
    command: process.execPath,
    args: ['--max-semi-space-size=32', program, name],
    cwd: join(trial.root, 'var/lib/capstan'),
    env,
    stopGraceMs: 40_000,
    isReady: () => answers(`http://${env.METRICS_HOST}:${env.METRICS_PORT}/metrics`),
  });
}

/** @param command the one of the page's unit */
export async function startCapability(trial: Trial, command: string, env: NodeJS.ProcessEnv): Promise<void> {
  const [program = '', ...args] = command.split(' ');
  const name = 'capability-shout';
  const log = join(trial.root, 'logs', `${name}.log`);
  await start(trial, {
    name,
    command: program,
    args,
    cwd: join(trial.root, 'var/lib/capstan'),
    env,
    // As the page has it: the log ends with this line once the instance is registered.
    isReady: async () => (await readFile(log, 'utf8')).includes('7/8 heartbeat'),
  });
}
