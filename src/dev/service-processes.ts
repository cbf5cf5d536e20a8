/** The two processes of Capstan itself, as children of the embedded stack, configured by their environment. */
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { readConfig } from '../config.ts';
import { findProgram } from './programs.ts';
import type { ChildSpec } from './supervisor/child-process.ts';
import { readTemporalConnection } from './temporal/environment.ts';

export interface ServiceOptions {
  readonly dataDir: string;
  readonly environment: NodeJS.ProcessEnv;
}

/** A young generation of up to 3 × 32 MiB, twice Node's: calls create many objects that live for a millisecond. */
export const heapFlags: readonly string[] = ['--max-semi-space-size=32'];

function describeService(
  name: 'server' | 'worker',
  { dataDir, environment }: ServiceOptions,
): Omit<ChildSpec, 'isReady'> {
  const { command, args } = findProgram(name);
  return {
    name,
    command,
    args: [...heapFlags, ...args],
    cwd: process.cwd(),
    env: environment,
    account: null,
    logFile: join(dataDir, 'logs', `${name}.log`),
    stopSignal: 'SIGTERM',
    stopGraceMs: readConfig(environment).SHUTDOWN_GRACE_MS + 10_000,
    readyTimeoutMs: 60_000,
  };
}

export function describeServer(options: ServiceOptions, apiUrl: string): ChildSpec {
  return {
    ...describeService('server', options),
    ports: [Number(new URL(apiUrl).port)],
    isReady: async () => (await fetch(`${apiUrl}/readyz`, { signal: AbortSignal.timeout(2_000) })).ok,
  };
}

const workflowQueue = 1;

/** True when this worker, not an earlier one, polls the task queue. */
async function isPolling(
  environment: NodeJS.ProcessEnv,
  { pid, startedAt }: { pid: number; startedAt: Date },
): Promise<boolean> {
  const { connectionOptions, namespace = 'default' } = readTemporalConnection(environment);
  const connection = await Connection.connect({ ...connectionOptions, connectTimeout: 5_000 });
  try {
    const { pollers } = await connection.workflowService.describeTaskQueue({
      namespace,
      taskQueue: { name: environment.TASK_QUEUE ?? 'capstan' },
      taskQueueType: workflowQueue,
    });
    return pollers.some(
      ({ identity, lastAccessTime }) =>
        identity?.startsWith(`${pid}@`) || Number(lastAccessTime?.seconds ?? 0) * 1_000 > startedAt.getTime(),
    );
  } finally {
    await connection.close();
  }
}

/** Both processes share a machine, so the worker's metrics use the port after the server's. */
function withOwnMetrics(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const port = Number(environment.METRICS_PORT || 0);
  return port === 0 ? environment : { ...environment, METRICS_PORT: String(port + 1) };
}

export function describeWorker(options: ServiceOptions): ChildSpec {
  const environment = withOwnMetrics(options.environment);
  return {
    ...describeService('worker', { ...options, environment }),
    isReady: (run) => isPolling(options.environment, run),
  };
}
