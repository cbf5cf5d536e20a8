/**
 * Everything that is measured, as separate processes. The systems under test share the first processor, one at a
 * time; Postgres, the upstream and the load share the second.
 */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findProgram } from '../../src/dev/programs.ts';
import { describeServer } from '../../src/dev/service-processes.ts';
import type { ChildSpec } from '../../src/dev/supervisor/child-process.ts';
import { ensureRivals } from '../shared/ensure-rivals.ts';
import type { Place } from '../shared/run-bench.ts';
import { startDatabase } from '../shared/start-database.ts';
import { createEnvironment, startTemporalServer } from '../shared/start-temporal.ts';
import { type Addresses, freeCapability, paidCapability } from './systems.ts';

export interface Stack extends Addresses {
  readonly databaseUrl: string;
  readonly paidUpstream: string;
  processes(): ReadonlyMap<string, number>;
}

const portkeyServer = '@portkey-ai/gateway/build/start-server.js';
const benchFolder = fileURLToPath(new URL('..', import.meta.url));

/** The server is measured as it is installed: compiled. */
function buildServer(): string {
  const root = join(benchFolder, '..');
  execFileSync(
    process.execPath,
    [join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json'],
    {
      cwd: root,
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  );
  return join(root, 'dist/src/server.js');
}

const hasTaskset = existsSync('/usr/bin/taskset');

export function pin(pid: number, processor: number): void {
  if (hasTaskset) execFileSync('taskset', ['-acp', String(processor), String(pid)], { stdio: 'ignore' });
}

type Programs = { readonly command: string; readonly args: readonly string[] };

function childOf(dataDir: string, name: string, { command, args }: Programs, readyUrl: string): ChildSpec {
  return {
    name,
    command,
    args,
    cwd: process.cwd(),
    env: process.env,
    account: null,
    logFile: join(dataDir, 'logs', `${name.replaceAll(' ', '-')}.log`),
    stopSignal: 'SIGTERM',
    stopGraceMs: 2_000,
    readyTimeoutMs: 30_000,
    isReady: async () => (await fetch(readyUrl, { signal: AbortSignal.timeout(2_000) })).status > 0,
  };
}

function program(path: string, ...more: string[]): Programs {
  const { command, args } = findProgram(`../bench/router/${path}`);
  return { command, args: [...args, ...more] };
}

function at(port: number): string {
  return `http://127.0.0.1:${port}`;
}

/** Starts the upstreams, then the rivals in front of the free one. @returns where each is */
async function startPrograms({ supervisor, dataDir, nextPort }: Place, rivals: string) {
  const start = async (name: string, toPrograms: (port: number) => Programs, ready = ''): Promise<string> => {
    const port = await nextPort();
    await supervisor.start(childOf(dataDir, name, toPrograms(port), at(port) + ready));
    return at(port);
  };
  const serve = (capability: string) => (port: number) => program('upstream', capability, String(port));
  const node = (...args: readonly string[]): Programs => ({ command: process.execPath, args });
  const upstream = await start('upstream', serve(freeCapability), '/health');
  const relay = (file: string) => (port: number) =>
    node(join(benchFolder, 'router', file), upstream, String(port));
  return {
    upstream,
    paidUpstream: await start('paid upstream', serve(paidCapability), '/health'),
    koa: await start('Koa relay', relay('relay-koa.mjs')),
    httpProxy: await start('http-proxy', relay('relay-http-proxy.mjs')),
    portkey: await start('Portkey', (port) =>
      node(join(rivals, portkeyServer), '--headless', `--port=${port}`),
    ),
  };
}

async function startServer(place: Place, databaseUrl: string): Promise<string> {
  const temporalAddress = await startTemporalServer(place);
  const port = await place.nextPort();
  const environment = {
    ...createEnvironment(place, { databaseUrl, temporalAddress, port }),
    LOG_LEVEL: 'warn',
    NODE_ENV: 'production',
  };
  const spec = describeServer({ dataDir: place.dataDir, environment }, at(port));
  await place.supervisor.start({ ...spec, command: process.execPath, args: [buildServer()] });
  return at(port);
}

/** @throws Error of the first part that does not start */
export async function startStack(place: Place): Promise<Stack> {
  const rivals = ensureRivals(['@portkey-ai/gateway']);
  const { databaseUrl, apiKey } = await startDatabase(place);
  const programs = await startPrograms(place, rivals);
  const capstan = await startServer(place, databaseUrl);
  const { supervisor } = place;
  for (const { name, pid } of supervisor.processes()) pin(pid, underTest.has(name) ? 0 : 1);
  pin(process.pid, 1);
  return {
    ...programs,
    capstan,
    apiKey,
    databaseUrl,
    processes: () => new Map(supervisor.processes().map(({ name, pid }) => [name, pid])),
  };
}

const underTest: ReadonlySet<string> = new Set(['server', 'Portkey', 'Koa relay', 'http-proxy']);
