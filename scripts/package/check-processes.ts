/** `migrate`, `server` and `worker` of an installation without optional parts carry out a run. */
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { choosePort } from '../../src/dev/ports.ts';
import type { ChildSpec } from '../../src/dev/supervisor/child-process.ts';
import type { Supervisor } from '../../src/dev/supervisor/supervisor.ts';
import { createApi } from './api.ts';
import type { Backing } from './backing.ts';
import { installedProgram } from './pack.ts';
import { runCommand } from './run-command.ts';
import { carryOutTrialRun } from './trial-run.ts';

interface Place {
  /** The installation. */
  readonly folder: string;
  /** Installations of the packages for authors and for programs, each alone. */
  readonly author: string;
  readonly client: string;
  readonly logs: string;
  readonly supervisor: Supervisor;
  readonly backing: Backing;
}

function describe(name: string, { folder, logs }: Place, environment: NodeJS.ProcessEnv): ChildSpec {
  return {
    name,
    command: process.execPath,
    args: [installedProgram(folder), name],
    cwd: folder,
    env: environment,
    account: null,
    logFile: join(logs, `${name}.log`),
    stopSignal: 'SIGTERM',
    stopGraceMs: 40_000,
    readyTimeoutMs: 60_000,
    isReady: async () => (await readFile(join(logs, `${name}.log`), 'utf8')).includes(`${name} is ready`),
  };
}

/** @throws Error that names the failed ones, with their output */
export async function checkProcesses(place: Place): Promise<void> {
  const { folder, supervisor, backing } = place;
  const port = await choosePort([]);
  const environment = {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    DATABASE_URL: backing.databaseUrl,
    TEMPORAL_ADDRESS: backing.temporalAddress,
    MEDIA_URL: pathToFileURL(join(folder, 'media')).href,
    PORT: String(port),
  };
  const keyFile = join(folder, 'api-key');
  await runCommand(['npx', 'capstan', 'migrate', '--api-key-file', keyFile], { cwd: folder, environment });
  const stops = await Promise.all(
    ['server', 'worker'].map((name) => supervisor.start(describe(name, place, environment))),
  );
  const url = `http://127.0.0.1:${port}`;
  const key = (await readFile(keyFile, 'utf8')).trim();
  await carryOutTrialRun(createApi(url, key));
  const stopAuthor = await startAuthor(place, { ROUTER_URL: url, ROUTER_TOKEN: key });
  await checkClient(place.client, { CAPSTAN_URL: url, CAPSTAN_API_KEY: key });
  await stopAuthor();
  await Promise.all(stops.map((stop) => stop()));
}

/** A program of an author who has `@capstan/capability` alone. */
const authorProgram = `import { serveCapability } from '@capstan/capability';
import { z } from 'zod';

await serveCapability({
  name: 'shout',
  version: '1.0.0',
  description: 'Writes a text in capitals',
  input: z.object({ text: z.string() }),
  output: z.object({ text: z.string() }),
  cost_model: { type: 'free', rate_usd: 0 },
  tags: ['text'],
  exec: async ({ text }) => ({ text: text.toUpperCase() }),
});
`;

/** A program of a user of `@capstan/client`. */
const clientProgram = `import { createCapstan, type Schemas } from '@capstan/client';

const { CAPSTAN_URL: url = '', CAPSTAN_API_KEY: key = '' } = process.env;
const capstan = createCapstan({ url, key });
const { data } = await capstan.GET('/v1/runs');
const [newest]: Schemas['RunSummary'][] = data?.items ?? [];
const { output } = await capstan.exec('shout', { input: { text: 'hello' } });
console.log(newest?.state, JSON.stringify(output));
`;

/** @returns the compiled file */
async function compile(folder: string, name: string, program: string): Promise<string> {
  await writeFile(join(folder, `${name}.mts`), program);
  const compiler = fileURLToPath(new URL('../../node_modules/typescript-7/bin/tsc', import.meta.url));
  const types = join(dirname(compiler), '../../@types');
  const options = [
    '--strict',
    '--module',
    'nodenext',
    '--target',
    'es2022',
    '--types',
    'node',
    '--typeRoots',
    types,
  ];
  await runCommand([process.execPath, compiler, ...options, `${name}.mts`], { cwd: folder });
  return join(folder, `${name}.mjs`);
}

async function startAuthor(place: Place, connection: NodeJS.ProcessEnv): Promise<() => Promise<void>> {
  const file = await compile(place.author, 'shout', authorProgram);
  const environment = { PATH: process.env.PATH, HOME: process.env.HOME, ...connection };
  return place.supervisor.start({
    ...describe('shout', place, environment),
    args: [file],
    cwd: place.author,
    isReady: async () => (await readFile(join(place.logs, 'shout.log'), 'utf8')).includes('7/8'),
  });
}

/** Compiles and runs a program against the installed client, which calls what the author serves. */
async function checkClient(folder: string, connection: NodeJS.ProcessEnv): Promise<void> {
  const file = await compile(folder, 'use-client', clientProgram);
  const environment = { PATH: process.env.PATH, ...connection };
  const printed = await runCommand([process.execPath, file], { cwd: folder, environment });
  if (printed.trim() !== 'succeeded {"text":"HELLO"}')
    throw new Error(`the program of @capstan/client printed: ${printed}`);
}
