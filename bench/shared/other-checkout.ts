/**
 * Another checkout of Capstan, measured next to the present one: the processes run from its own sources with its own
 * packages, on the same Postgres and the same Temporal, with a database and a task queue of their own. It may be older
 * or newer: what must be the same are the two entries, the environment, the HTTP API, and the table `run`.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureDatabase } from '../../src/dev/postgres/server.ts';
import type { Program } from '../../src/dev/programs.ts';
import { describeServer, heapFlags } from '../../src/dev/service-processes.ts';
import type { ChildSpec } from '../../src/dev/supervisor/child-process.ts';
import type { Place } from './run-bench.ts';
import type { Database } from './start-database.ts';

export interface Checkout {
  /** The last folder of its path, in titles and names of processes. */
  readonly name: string;
  readonly root: string;
}

/** @throws Error where there is no checkout with its packages installed */
export function findCheckout(path: string): Checkout {
  const root = resolve(path);
  const missing = ['src/server.ts', 'src/worker.ts', 'node_modules'].find(
    (file) => !existsSync(join(root, file)),
  );
  if (missing !== undefined) throw new Error(`--beside ${path}: there is no ${missing}`);
  return { name: basename(root), root };
}

/** The program started from its TypeScript sources. */
export function sourceProgram({ root }: Checkout, entry: 'server' | 'worker'): Program {
  const loader = pathToFileURL(createRequire(join(root, 'package.json')).resolve('tsx')).href;
  return { command: process.execPath, args: ['--import', loader, join(root, 'src', `${entry}.ts`)] };
}

/** @returns the program as it is installed: compiled by the checkout's own compiler into its `dist/` */
export function buildProgram(root: string, entry: 'server' | 'worker'): Program {
  const run = (args: readonly string[]): void => {
    execFileSync(process.execPath, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  };
  run([join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json']);
  // What a build does after the compiler, as far as the checkout has it.
  for (const script of ['scripts/copy-files.mjs', 'scripts/link-packages.ts'])
    if (existsSync(join(root, script))) run(['--import', 'tsx', script]);
  return { command: process.execPath, args: [...heapFlags, join(root, 'dist/src', `${entry}.js`)] };
}

/** The same process of the other checkout, under a name and with a log of its own. */
export function describeOther(spec: ChildSpec, { name, root }: Checkout, program: Program): ChildSpec {
  const ownName = `${spec.name} (${name})`;
  return {
    ...spec,
    ...program,
    name: ownName,
    cwd: root,
    logFile: join(dirname(spec.logFile), `${spec.name}-${name}.log`),
  };
}

export interface OtherServer extends Omit<Database, 'projectId'> {
  /** The name of its process. */
  readonly name: string;
  readonly apiUrl: string;
  /** Its worker needs the same. */
  readonly environment: NodeJS.ProcessEnv;
}

interface Start {
  readonly checkout: Checkout;
  readonly program: Program;
  readonly database: Database;
  /** What this checkout's own server is given. */
  readonly environment: NodeJS.ProcessEnv;
}

/** The server makes its tables and its key itself. @throws Error with the end of its log */
export async function startOtherServer(
  place: Place,
  { checkout, program, database: { server }, environment: shared }: Start,
): Promise<OtherServer> {
  const port = await place.nextPort();
  const databaseUrl = await ensureDatabase(server, 'beside');
  const apiKeyFile = join(place.dataDir, 'beside-api-key');
  const environment = {
    ...shared,
    DATABASE_URL: databaseUrl,
    PORT: String(port),
    TASK_QUEUE: 'beside',
    API_KEY_FILE: apiKeyFile,
  };
  const apiUrl = `http://127.0.0.1:${port}`;
  const own = describeServer({ dataDir: place.dataDir, environment }, apiUrl);
  const spec = describeOther(own, checkout, program);
  await place.supervisor.start(spec);
  return {
    name: spec.name,
    server,
    databaseUrl,
    apiUrl,
    environment,
    apiKey: readFileSync(apiKeyFile, 'utf8').trim(),
  };
}
