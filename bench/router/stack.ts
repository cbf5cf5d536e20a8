/**
 * Everything that is measured, as separate processes. The systems under test share the first processor, one at a
 * time; Postgres, the upstream and the load share the second.
 */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findProgram } from '../../src/dev/programs.ts';
import { describeServer, heapFlags } from '../../src/dev/service-processes.ts';
import type { ChildSpec } from '../../src/dev/supervisor/child-process.ts';
import { ensureRivals } from '../shared/ensure-rivals.ts';
import { buildProgram, type Checkout, startOtherServer } from '../shared/other-checkout.ts';
import type { Place } from '../shared/run-bench.ts';
import { type Database, startDatabase } from '../shared/start-database.ts';
import { createEnvironment, startTemporalServer } from '../shared/start-temporal.ts';
import { type Addresses, freeCapability, paidCapability } from './systems.ts';

export interface Stack extends Addresses {
  readonly paidUpstream: string;
  processes(): ReadonlyMap<string, number>;
}

const portkeyServer = '@portkey-ai/gateway/build/start-server.js';
const benchFolder = fileURLToPath(new URL('..', import.meta.url));

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

async function startServers(
  place: Place,
  database: Database,
  beside: Checkout | null,
): Promise<Pick<Stack, 'capstan' | 'beside'>> {
  const { databaseUrl, apiKey } = database;
  const temporalAddress = await startTemporalServer(place);
  const port = await place.nextPort();
  const environment = {
    ...createEnvironment(place, { databaseUrl, temporalAddress, port }),
    LOG_LEVEL: 'warn',
    NODE_ENV: 'production',
  };
  const spec = describeServer({ dataDir: place.dataDir, environment }, at(port));
  const { command, args } = buildProgram(join(benchFolder, '..'), 'server');
  await place.supervisor.start({ ...spec, command, args: [...heapFlags, ...args] });
  const capstan = { url: at(port), apiKey, part: spec.name };
  if (beside === null) return { capstan, beside };
  const program = buildProgram(beside.root, 'server');
  const other = await startOtherServer(place, { checkout: beside, program, database, environment });
  return { capstan, beside: { url: other.apiUrl, apiKey: other.apiKey, part: other.name } };
}

/** @throws Error of the first part that does not start */
export async function startStack(place: Place, beside: Checkout | null): Promise<Stack> {
  const rivals = ensureRivals(['@portkey-ai/gateway']);
  const database = await startDatabase(place);
  const programs = await startPrograms(place, rivals);
  const servers = await startServers(place, database, beside);
  const underTest = new Set([
    'Portkey',
    'Koa relay',
    'http-proxy',
    servers.capstan.part,
    servers.beside?.part,
  ]);
  const { supervisor } = place;
  for (const { name, pid } of supervisor.processes()) pin(pid, underTest.has(name) ? 0 : 1);
  pin(process.pid, 1);
  return {
    ...programs,
    ...servers,
    processes: () => new Map(supervisor.processes().map(({ name, pid }) => [name, pid])),
  };
}
