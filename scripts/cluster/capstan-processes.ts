/** Servers and workers out of an installed package, as their commands start them. */
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import type { ChildSpec } from '../../src/dev/supervisor/child-process.ts';
import { installedProgram } from '../package/pack.ts';
import { answers } from './answers.ts';
import type { ClusterPlace } from './place.ts';

export interface ProcessOptions {
  /** Where the package is installed. */
  readonly installation: string;
  /** What all of them have. */
  readonly environment: NodeJS.ProcessEnv;
  readonly temporal: { readonly address: string; readonly namespace: string };
}

type Part = Pick<ChildSpec, 'name' | 'isReady'> & { readonly command: 'server' | 'worker' };

function startPart(place: ClusterPlace, part: Part, options: ProcessOptions, own: NodeJS.ProcessEnv) {
  const { name, command, isReady } = part;
  return place.start({
    name,
    isReady,
    command: process.execPath,
    args: ['--max-semi-space-size=32', installedProgram(options.installation), command],
    cwd: options.installation,
    env: { ...options.environment, ...own },
    account: null,
    logFile: join(place.folder, 'logs', `${name}.log`),
    stopSignal: 'SIGTERM',
    stopGraceMs: 40_000,
    readyTimeoutMs: 90_000,
  });
}

const workflowQueue = 1;

/** Whether this very worker, not one before it, polls the task queue. */
async function isPolling({ address, namespace }: ProcessOptions['temporal'], pid: number): Promise<boolean> {
  const connection = await Connection.connect({ address, connectTimeout: 5_000 });
  try {
    const taskQueue = { name: 'capstan' };
    const asked = { namespace, taskQueue, taskQueueType: workflowQueue };
    const { pollers } = await connection.workflowService.describeTaskQueue(asked);
    return pollers.some(({ identity }) => identity?.startsWith(`${pid}@`));
  } finally {
    await connection.close();
  }
}

export async function startServers(place: ClusterPlace, options: ProcessOptions): Promise<void> {
  const { serverMetrics } = place.ports;
  const start = (port: number, index: number) => {
    const isReady = () => answers(`http://127.0.0.1:${port}/readyz`);
    const part = { name: `server-${index + 1}`, command: 'server', isReady } as const;
    const own = { PORT: String(port), METRICS_PORT: String(serverMetrics[index]) };
    return startPart(place, part, options, own);
  };
  await Promise.all(place.ports.servers.slice(0, place.servers).map(start));
}

export async function startWorkers(place: ClusterPlace, options: ProcessOptions): Promise<void> {
  const start = (metrics: number, index: number) => {
    const isReady: ChildSpec['isReady'] = ({ pid }) => isPolling(options.temporal, pid);
    const part = { name: `worker-${index + 1}`, command: 'worker', isReady } as const;
    return startPart(place, part, options, { METRICS_PORT: String(metrics) });
  };
  await Promise.all(place.ports.workerMetrics.slice(0, place.workers).map(start));
}
