/**
 * Everything that is measured, as separate processes. The systems under test share the first processor, one at a
 * time; Postgres, the upstream and the load share the second.
 */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { ensurePythonProgram } from '../../scripts/tools/ensure-program.ts';
import { findProgram } from '../../src/dev/programs.ts';
import { describeServer } from '../../src/dev/service-processes.ts';
import type { ChildSpec } from '../../src/dev/supervisor/child-process.ts';
import { ensureRivals } from '../shared/ensure-rivals.ts';
import { buildProgram, type Checkout, startOtherServer } from '../shared/other-checkout.ts';
import type { Place } from '../shared/run-bench.ts';
import { type Database, startDatabase } from '../shared/start-database.ts';
import { createEnvironment, startTemporalServer } from '../shared/start-temporal.ts';
import type { Addresses, CapstanServer, GatewayWithKey, Group } from './systems.ts';

export interface Stack extends Addresses {
  processes(): ReadonlyMap<string, number>;
}

/** Installed from the index of packages that pip is set up for. */
const litellmPackage = 'litellm[proxy]==1.106.12';
const portkeyServer = '@portkey-ai/gateway/build/start-server.js';
const benchFolder = fileURLToPath(new URL('..', import.meta.url));

/** A bench that may use one processor alone keeps to it. */
export const canPin = existsSync('/usr/bin/taskset') && availableParallelism() > 1;

export function pin(pid: number, processor: number): void {
  if (canPin) execFileSync('taskset', ['-acp', String(processor), String(pid)], { stdio: 'ignore' });
}

interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

function childOf(
  dataDir: string,
  name: string,
  { command, args, environment }: Program,
  readyUrl: string,
): ChildSpec {
  return {
    name,
    command,
    args,
    cwd: process.cwd(),
    env: { ...process.env, ...environment },
    account: null,
    logFile: join(dataDir, 'logs', `${name.replaceAll(' ', '-')}.log`),
    stopSignal: 'SIGTERM',
    stopGraceMs: 2_000,
    readyTimeoutMs: 120_000,
    isReady: async () => (await fetch(readyUrl, { signal: AbortSignal.timeout(2_000) })).status > 0,
  };
}

function program(path: string, ...more: string[]): Program {
  const { command, args } = findProgram(`../bench/router/${path}`);
  return { command, args: [...args, ...more] };
}

function at(port: number): string {
  return `http://127.0.0.1:${port}`;
}

async function startPart(
  { supervisor, dataDir, nextPort }: Place,
  name: string,
  { toProgram, ready }: Start,
): Promise<string> {
  const port = await nextPort();
  await supervisor.start(childOf(dataDir, name, toProgram(port), at(port) + ready));
  return at(port);
}

interface Start {
  readonly toProgram: (port: number) => Program;
  /** The path that answers once it is ready. */
  readonly ready: string;
}

/** @returns its address */
export function startUpstream(place: Place): Promise<string> {
  const toProgram = (port: number): Program => program('upstream', String(port));
  return startPart(place, 'upstream', { toProgram, ready: '/bench/health' });
}

/** The proxy of LiteLLM as its guide starts it, with one model and a key. It stores nothing. */
async function startLitellm(place: Place, upstream: string): Promise<GatewayWithKey> {
  const command = await ensurePythonProgram(litellmPackage, 'litellm');
  const config = join(place.dataDir, 'litellm.json'); // JSON is YAML
  const apiKey = `sk-${randomBytes(32).toString('hex')}`;
  const litellm_params = { model: 'openai/bench', api_base: `${upstream}/v1`, api_key: 'none' };
  writeFileSync(config, JSON.stringify({ model_list: [{ model_name: 'bench', litellm_params }] }));
  const environment = {
    LITELLM_MASTER_KEY: apiKey,
    LITELLM_MODE: 'PRODUCTION',
    LITELLM_LOG: 'ERROR',
    LITELLM_LOCAL_MODEL_COST_MAP: 'True',
  };
  const toProgram = (port: number): Program => {
    const args = ['--config', config, '--host', '127.0.0.1', '--port', String(port), '--telemetry', 'False'];
    return { command, args, environment };
  };
  const url = await startPart(place, 'LiteLLM', { toProgram, ready: '/health/liveliness' });
  return { url, apiKey };
}

/** Starts the upstream, then the rivals in front of it. @returns where each is */
async function startPrograms(
  place: Place,
  { rivals, withLitellm }: { readonly rivals: string; readonly withLitellm: boolean },
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
    litellm: withLitellm ? await startLitellm(place, upstream) : null,
  };
}

interface StartedServer extends CapstanServer {
  /** What it was started with. */
  readonly environment: NodeJS.ProcessEnv;
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
  return { url: at(port), apiKey, part: spec.name, environment };
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
  const { environment, ...capstan } = await startCapstan(place, database, flags);
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
  const withLitellm = groups.some((group) => group !== 'exec');
  const rivals = ensureRivals(['@portkey-ai/gateway']);
  const database = await startDatabase(place);
  const programs = await startPrograms(place, { rivals, withLitellm });
  const servers = await startServers(place, { database, beside });
  const underTest = new Set([
    'Portkey',
    'LiteLLM',
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
