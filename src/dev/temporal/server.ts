/**
 * Starts the Temporal dev server as a supervised child that keeps its state in one SQLite file, with settings for a
 * server that only Capstan uses.
 */

import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { searchAttributes } from '@capstan/core/workflow-names';
import { Connection } from '@temporalio/client';
import { addMissingSearchAttributes } from '../../clients/temporal/search-attributes.ts';
import { isPortAnswered } from '../ports.ts';
import type { ChildSpec } from '../supervisor/child-process.ts';
import type { Supervisor } from '../supervisor/supervisor.ts';
import { withoutTemporal } from './environment.ts';

/** Settings for any Temporal server that only Capstan uses. The default settings protect a cluster that many share. */
export const ownServerSettings = {
  // The default of 20 polls per second costs 75 to 100 ms per step.
  'history.transferProcessorMaxPollRPS': 1_000,
  'history.timerProcessorMaxPollRPS': 1_000,
  'system.enableActivityEagerExecution': true,
  // For priorities, and fairness between projects.
  'matching.useNewMatcher': true,
  'matching.enableFairness': true,
  // By default each node keeps the last 128,000 workflows in memory, tens of kilobytes each.
  'history.cacheTTL': '"5m"',
  'history.cacheBackgroundEvict': '{"Enabled":true}',
  // The server has no other clients that a rate limit would protect.
  'frontend.rps': 100_000,
  'frontend.namespaceRPS': 100_000,
  'frontend.namespaceRPS.visibility': 1_000,
  'frontend.namespaceCount': 10_000,
  'history.rps': 100_000,
  'matching.rps': 100_000,
} as const;

/** Further settings of the embedded server. */
const dynamicConfig = {
  ...ownServerSettings,
  // By default, timers take at least a second.
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

/** If a server never became ready, its file may hold a partial schema, with which no server starts. */
async function removeHalfMade(databaseFile: string, marker: string): Promise<void> {
  if (existsSync(marker)) return;
  for (const suffix of ['', '-wal', '-shm']) await rm(`${databaseFile}${suffix}`, { force: true });
}

/** The server picks one port by itself, for HTTP. Another process may take that port before the server opens it. */
const portTaken = /failed listening for HTTP API on .*: address already in use/;

async function startOnFreePort(supervisor: Supervisor, spec: ChildSpec, starts = 3): Promise<void> {
  try {
    await supervisor.start(spec);
  } catch (error) {
    if (starts === 1 || !portTaken.test(String(error))) throw error;
    await startOnFreePort(supervisor, spec, starts - 1);
  }
}

/** Resolves when the server answers. @returns its address @throws Error with the end of its log */
export async function startTemporal(supervisor: Supervisor, options: TemporalOptions): Promise<string> {
  const folder = join(options.dataDir, 'temporal');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const databaseFile = join(folder, 'state.sqlite');
  const marker = `${databaseFile}.complete`;
  await startOnFreePort(supervisor, {
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
    ports: [options.port, options.uiPort],
    prepare: () => removeHalfMade(databaseFile, marker),
    isReady: () => answers(options.port),
  });
  await writeFile(marker, '');
  return `127.0.0.1:${options.port}`;
}
