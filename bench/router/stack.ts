/**
 * Everything that is measured, as separate processes. The systems under test share the first processor, one at a
 * time; Postgres, the upstream and the load share the second. All of it ends with this process.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { createTemporaryFolder } from '../../src/dev/data-folder.ts';
import { choosePort } from '../../src/dev/ports.ts';
import { ensureDatabase, startPostgres } from '../../src/dev/postgres/server.ts';
import { findProgram } from '../../src/dev/programs.ts';
import { createPartReport, type Report } from '../../src/dev/progress.ts';
import { describeServer } from '../../src/dev/service-processes.ts';
import type { ChildSpec } from '../../src/dev/supervisor/child-process.ts';
import { createSupervisor } from '../../src/dev/supervisor/supervisor.ts';
import { embeddedTemporalEnvironment, withoutTemporal } from '../../src/dev/temporal/environment.ts';
import { startTemporal } from '../../src/dev/temporal/server.ts';
import { findCacheDir, findTemporal } from '../../src/dev/temporal/source.ts';
import { prepareDatabase } from '../../src/services/setup.ts';
import { type Addresses, freeCapability, paidCapability } from './systems.ts';

export interface Stack extends Addresses {
  readonly databaseUrl: string;
  readonly paidUpstream: string;
  processes(): ReadonlyMap<string, number>;
  stop(): Promise<void>;
}

const benchFolder = fileURLToPath(new URL('..', import.meta.url));
const portkeyServer = join(benchFolder, 'node_modules/@portkey-ai/gateway/build/start-server.js');

/** The rivals are no part of Capstan's own dependencies. */
const ensureRivals = (): void => {
  if (existsSync(portkeyServer)) return;
  execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
    ...{ cwd: benchFolder, stdio: ['ignore', 'ignore', 'inherit'] },
  });
};

/** The server is measured as it is installed: compiled. */
const buildServer = (): string => {
  const root = join(benchFolder, '..');
  execFileSync(
    process.execPath,
    [join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json'],
    {
      ...{ cwd: root, stdio: ['ignore', 'inherit', 'inherit'] },
    },
  );
  return join(root, 'dist/src/server.js');
};

const hasTaskset = existsSync('/usr/bin/taskset');

export const pin = (pid: number, processor: number): void => {
  if (hasTaskset) execFileSync('taskset', ['-acp', String(processor), String(pid)], { stdio: 'ignore' });
};

type Programs = { readonly command: string; readonly args: readonly string[] };

const childOf = (
  dataDir: string,
  name: string,
  { command, args }: Programs,
  readyUrl: string,
): ChildSpec => ({
  ...{ name, command, args, cwd: process.cwd(), env: process.env, account: null },
  logFile: join(dataDir, 'logs', `${name.replaceAll(' ', '-')}.log`),
  ...{ stopSignal: 'SIGTERM', stopGraceMs: 2_000, readyTimeoutMs: 30_000 },
  isReady: async () => (await fetch(readyUrl, { signal: AbortSignal.timeout(2_000) })).status > 0,
});

const program = (path: string, ...more: string[]): Programs => {
  const { command, args } = findProgram(`../bench/router/${path}`);
  return { command, args: [...args, ...more] };
};

const choosePorts = async (count: number): Promise<number[]> => {
  const taken = new Set<number>();
  while (taken.size < count) taken.add(await choosePort([], taken));
  return [...taken];
};

const at = (port: number): string => `http://127.0.0.1:${port}`;

/** @throws Error of the first part that does not start */
export const startStack = async (report: Report): Promise<Stack> => {
  ensureRivals();
  const dataDir = createTemporaryFolder('capstan-bench-');
  const supervisor = createSupervisor({ report, temporaryFolder: dataDir });
  try {
    const ports = (await choosePorts(9)) as [
      number,
      number,
      number,
      number,
      number,
      number,
      number,
      number,
      number,
    ];
    const [postgresPort, temporalPort, uiPort, free, paid, koa, httpProxy, portkey, capstan] = ports;
    const cacheDir = findCacheDir(process.env, homedir());
    const postgres = await startPostgres(
      supervisor,
      { dataDir, port: postgresPort, ephemeral: false, cacheDir },
      createPartReport(report, 'Postgres'),
    );
    const databaseUrl = await ensureDatabase(postgres, 'capstan');
    const access = await prepareDatabase(databaseUrl, { apiKeyFile: join(dataDir, 'api-key') });
    const environment = withoutTemporal(process.env);
    const { path } = await findTemporal({ cacheDir, environment }, createPartReport(report, 'Temporal'));
    const temporal = await startTemporal(supervisor, {
      ...{ dataDir, ephemeral: false, environment, program: path, port: temporalPort, uiPort },
    });
    const start = (name: string, what: Programs, readyUrl: string): Promise<void> =>
      supervisor.start(childOf(dataDir, name, what, readyUrl));
    await start('upstream', program('upstream', freeCapability, String(free)), `${at(free)}/health`);
    await start('paid upstream', program('upstream', paidCapability, String(paid)), `${at(paid)}/health`);
    const node = process.execPath;
    const relay = (file: string, port: number): Programs => ({
      ...{ command: node, args: [join(benchFolder, 'router', file), at(free), String(port)] },
    });
    await start('Koa relay', relay('relay-koa.mjs', koa), at(koa));
    await start('http-proxy', relay('relay-http-proxy.mjs', httpProxy), at(httpProxy));
    await start(
      'Portkey',
      { command: node, args: [portkeyServer, '--headless', `--port=${portkey}`] },
      at(portkey),
    );
    const mediaDir = join(dataDir, 'media');
    mkdirSync(mediaDir);
    const server = {
      ...environment,
      ...embeddedTemporalEnvironment(temporal, dataDir),
      ...{ DATABASE_URL: databaseUrl, MEDIA_URL: pathToFileURL(mediaDir).href, LOG_LEVEL: 'warn' },
      ...{ HOST: '127.0.0.1', PORT: String(capstan), NODE_ENV: 'production' },
    };
    const spec = describeServer({ dataDir, environment: server }, at(capstan));
    await supervisor.start({ ...spec, command: process.execPath, args: [buildServer()] });
    for (const { name, pid } of supervisor.processes()) pin(pid, underTest.has(name) ? 0 : 1);
    pin(process.pid, 1);
    return {
      ...{
        upstream: at(free),
        koa: at(koa),
        httpProxy: at(httpProxy),
        portkey: at(portkey),
        capstan: at(capstan),
      },
      ...{ apiKey: access.api_key, databaseUrl, paidUpstream: at(paid) },
      processes: () => new Map(supervisor.processes().map(({ name, pid }) => [name, pid])),
      stop: () => supervisor.stop(),
    };
  } catch (error) {
    await supervisor.stop();
    throw error;
  }
};

const underTest: ReadonlySet<string> = new Set(['server', 'Portkey', 'Koa relay', 'http-proxy']);
