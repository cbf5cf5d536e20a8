/**
 * Starts the Temporal dev server as a supervised child that keeps its state in one SQLite file, with the settings
 * of a server that runs for Capstan alone.
 */

import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { addMissingSearchAttributes } from '../../clients/temporal/search-attributes.ts';
import { searchAttributes } from '../../core/workflow-names.ts';
import { isPortAnswered } from '../ports.ts';
import type { Supervisor } from '../supervisor/supervisor.ts';
import { withoutTemporal } from './environment.ts';

/** Of any Temporal server that runs for Capstan alone. The stock settings protect a cluster that many share. */
export const ownServerSettings = {
  // The stock 20 polls a second cost 75 to 100 ms for every step.
  'history.transferProcessorMaxPollRPS': 1_000,
  'history.timerProcessorMaxPollRPS': 1_000,
  'system.enableActivityEagerExecution': true,
  // Priorities and fairness between projects.
  'matching.useNewMatcher': true,
  'matching.enableFairness': true,
  // By the stock settings each node keeps the last 128,000 workflows in memory, tens of kilobytes each.
  'history.cacheTTL': '"5m"',
  'history.cacheBackgroundEvict': '{"Enabled":true}',
  // Nobody to be protected from by a rate.
  'frontend.rps': 100_000,
  'frontend.namespaceRPS': 100_000,
  'frontend.namespaceRPS.visibility': 1_000,
  'frontend.namespaceCount': 10_000,
  'history.rps': 100_000,
  'matching.rps': 100_000,
} as const;

/** What the embedded one is told besides. */
const dynamicConfig = {
  ...ownServerSettings,
  // Timers of a second at the least otherwise.
  'history.timerProcessorMaxTimeShift': '"10ms"',
  // Strict order of priorities needs one partition.
  'matching.numTaskqueueReadPartitions': 1,
  'matching.numTaskqueueWritePartitions': 1,
} as const;

interface TemporalPorts {
  readonly port: number;
  readonly uiPort: number;
}

function pairs(flag: string, values: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(values).flatMap(([name, value]) => [flag, `${name}=${value}`]);
}

function serverArguments(
  { port, uiPort }: TemporalPorts,
  { databaseFile, ephemeral }: { databaseFile: string; ephemeral: boolean },
): string[] {
  return [
    ...['server', 'start-dev', '--ip', '127.0.0.1', '--port', String(port), '--ui-port', String(uiPort)],
    ...['--db-filename', databaseFile, '--log-level', 'error'],
    ...pairs('--sqlite-pragma', { journal_mode: 'wal', ...(ephemeral ? { synchronous: 'off' } : {}) }),
    ...pairs('--search-attribute', searchAttributes),
    ...pairs('--dynamic-config-value', dynamicConfig),
  ];
}

interface TemporalOptions extends TemporalPorts {
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
