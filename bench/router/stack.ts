/**
 * Everything that is measured, as separate processes. The systems under test share the first processor, one at a
 * time; Postgres, the upstream and the load share the second.
 */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { describeServer } from '../../src/dev/service-processes.ts';
import { ensureRivals } from '../shared/ensure-rivals.ts';
import { buildProgram, type Checkout, startOtherServer } from '../shared/other-checkout.ts';
import type { Place } from '../shared/run-bench.ts';
import { type Database, startDatabase } from '../shared/start-database.ts';
import { createEnvironment, startTemporalServer } from '../shared/start-temporal.ts';
import { startModelGateways } from './model-gateways.ts';
import { at, type Program, program, type Start, startPart } from './parts.ts';
import type { Addresses, CapstanServer, Group } from './systems.ts';

export interface Stack extends Addresses {
  processes(): ReadonlyMap<string, number>;
}

const portkeyServer = '@portkey-ai/gateway/build/start-server.js';
const benchFolder = fileURLToPath(new URL('..', import.meta.url));

/** A bench that may use one processor alone keeps to it. */
export const canPin = existsSync('/usr/bin/taskset') && availableParallelism() > 1;

export function pin(pid: number, processor: number): void {
  if (canPin) execFileSync('taskset', ['-acp', String(processor), String(pid)], { stdio: 'ignore' });
}

/** @returns its address */
export function startUpstream(place: Place): Promise<string> {
  const toProgram = (port: number): Program => program('upstream', String(port));
  return startPart(place, 'upstream', { toProgram, ready: '/bench/health' });
}

/** Starts the upstream, then the rivals in front of it. @returns where each is */
async function startPrograms(
  place: Place,
  { rivals, withModels }: { readonly rivals: string; readonly withModels: boolean },
) {
  const start = (name: string, toProgram: Start['toProgram'], ready = ''): Promise<string> =>
    startPart(place, name, { toProgram, ready });
  const node = (...args: readonly string[]): Program => ({ command: process.execPath, args });
  const upstream = await startUpstream(place);
  const relay = (file: string) => (port: number) =>
    node(join(benchFolder, 'router', file), upstream, String(port));
  return {
    upstream,
    koa: await start('Koa relay', relay('relay-koa.mjs')),
    httpProxy: await start('http-proxy', relay('relay-http-proxy.mjs')),
    portkey: await start('Portkey', (port) =>
      node(
        '--import',
        pathToFileURL(join(benchFolder, 'router/portkey-streams.mjs')).href,
        join(rivals, portkeyServer),
        '--headless',
        `--port=${port}`,
      ),
    ),
    modelGateways: withModels ? await startModelGateways(place, upstream) : null,
  };
}

interface StartedServer extends CapstanServer {
  /** What it was started with. */
  readonly environment: NodeJS.ProcessEnv;
  readonly program: ReturnType<typeof buildProgram>;
}

/** Compiles this checkout and starts its server. @param flags of Node */
export async function startCapstan(
  place: Place,
  { databaseUrl, apiKey }: Database,
  flags: readonly string[] = [],
): Promise<StartedServer> {
  const temporalAddress = await startTemporalServer(place);
  const port = await place.nextPort();
  const environment = {
    ...createEnvironment(place, { databaseUrl, temporalAddress, port }),
    LOG_LEVEL: 'warn',
    NODE_ENV: 'production',
  };
  const spec = describeServer({ dataDir: place.dataDir, environment }, at(port));
  const { command, args } = buildProgram(join(benchFolder, '..'), 'server');
  await place.supervisor.start({ ...spec, command, args: [...flags, ...args] });
  return { url: at(port), apiKey, part: spec.name, environment, program: { command, args } };
}

interface NewServers {
  readonly database: Database;
  readonly beside: Checkout | null;
  /** Of Node, for the server of this checkout. */
  readonly flags?: readonly string[];
}

export async function startServers(
  place: Place,
  { database, beside, flags = [] }: NewServers,
): Promise<Pick<Stack, 'capstan' | 'beside'>> {
  const { environment, program: _, ...capstan } = await startCapstan(place, database, flags);
  if (beside === null) return { capstan, beside };
  const program = buildProgram(beside.root, 'server');
  const other = await startOtherServer(place, { checkout: beside, program, database, environment });
  return { capstan, beside: { url: other.apiUrl, apiKey: other.apiKey, part: other.name } };
}

export interface Measuring {
  readonly beside: Checkout | null;
  readonly groups: readonly Group[];
}

/** @throws Error of the first part that does not start */
export async function startStack(place: Place, { beside, groups }: Measuring): Promise<Stack> {
  const withModels = groups.some((group) => group !== 'exec');
  const rivals = ensureRivals(['@portkey-ai/gateway']);
  const database = await startDatabase(place);
  const programs = await startPrograms(place, { rivals, withModels });
  const servers = await startServers(place, { database, beside });
  const underTest = new Set([
    'Portkey',
    'LiteLLM',
    'litellm-rs',
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
