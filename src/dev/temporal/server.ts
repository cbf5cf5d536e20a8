/** Starts the Temporal dev server as a supervised child that keeps its state in one SQLite file. */
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { addMissingSearchAttributes } from '../../clients/temporal/search-attributes.ts';
import { isPortAnswered } from '../ports.ts';
import type { Supervisor } from '../supervisor/supervisor.ts';
import { withoutTemporal } from './environment.ts';
import { serverArguments, type TemporalPorts } from './settings.ts';

export interface TemporalOptions extends TemporalPorts {
  readonly dataDir: string;
  readonly ephemeral: boolean;
  readonly program: string;
  readonly environment: NodeJS.ProcessEnv;
}

async function answers(port: number): Promise<boolean> {
  if (!(await isPortAnswered(port))) return false;
  const connection = await Connection.connect({ address: `127.0.0.1:${port}`, connectTimeout: 2_000 });
  try {
    await connection.workflowService.describeNamespace({ namespace: 'default' });
    await addMissingSearchAttributes(connection, 'default');
    return true;
  } finally {
    await connection.close();
  }
}

/** A file whose server never became ready may hold half a schema, on which no server starts. */
async function removeHalfMade(databaseFile: string, marker: string): Promise<void> {
  if (existsSync(marker)) return;
  for (const suffix of ['', '-wal', '-shm']) await rm(`${databaseFile}${suffix}`, { force: true });
}

/** Resolves when it answers. @returns its address @throws Error with the end of the server's log */
export async function startTemporal(supervisor: Supervisor, options: TemporalOptions): Promise<string> {
  const folder = join(options.dataDir, 'temporal');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const databaseFile = join(folder, 'state.sqlite');
  const marker = `${databaseFile}.complete`;
  await supervisor.start({
    name: 'Temporal',
    command: options.program,
    args: serverArguments(options, { databaseFile, ephemeral: options.ephemeral }),
    cwd: options.dataDir,
    env: withoutTemporal(options.environment),
    account: null,
    logFile: join(options.dataDir, 'logs', 'temporal.log'),
    stopSignal: 'SIGTERM',
    stopGraceMs: 10_000,
    readyTimeoutMs: 60_000,
    prepare: () => removeHalfMade(databaseFile, marker),
    isReady: () => answers(options.port),
  });
  await writeFile(marker, '');
  return `127.0.0.1:${options.port}`;
}
