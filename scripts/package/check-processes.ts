/** `migrate`, `server` and `worker` of an installation without optional parts carry out a run. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
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

/** @throws Error that says which of them failed, with what it printed */
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
  await carryOutTrialRun(createApi(`http://127.0.0.1:${port}`, (await readFile(keyFile, 'utf8')).trim()));
  await Promise.all(stops.map((stop) => stop()));
}
