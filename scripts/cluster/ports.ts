/**
 * The ports of a cluster: one block below those that the system gives to clients, so that a part that is started again
 * finds its own free. Both Temporal nodes have the same ones, on addresses of their own.
 */
import { isPortFree } from '../../src/dev/ports.ts';

const offsets = {
  api: 0,
  postgres: 5,
  temporal: 10,
  frontend: 11,
  frontendHttp: 12,
  frontendMembership: 13,
  history: 14,
  historyMembership: 15,
  matching: 16,
  matchingMembership: 17,
  system: 18,
  systemMembership: 19,
  s3: 20,
} as const;

/** The port of the first of several; the others follow. */
const serverOffset = 30;
const serverMetricsOffset = 34;
const workerMetricsOffset = 38;
export const mostProcesses = 4;

export interface ClusterPorts extends Readonly<Record<keyof typeof offsets, number>> {
  readonly servers: readonly number[];
  readonly serverMetrics: readonly number[];
  readonly workerMetrics: readonly number[];
}

function fourFrom(port: number): number[] {
  return Array.from({ length: mostProcesses }, (_, index) => port + index);
}

/** @param block the first of them */
export function layOut(block: number): ClusterPorts {
  const ports = Object.entries(offsets).map(([name, offset]) => [name, block + offset]);
  return Object.assign(Object.fromEntries(ports), {
    servers: fourFrom(block + serverOffset),
    serverMetrics: fourFrom(block + serverMetricsOffset),
    workerMetrics: fourFrom(block + workerMetricsOffset),
  });
}

const firstBlock = 17_400;
const lastBlock = 30_000;
const blockSize = 50;

/** @throws Error when no whole block is free */
export async function chooseClusterPorts(): Promise<ClusterPorts> {
  for (let block = firstBlock; block <= lastBlock; block += blockSize) {
    const ports = layOut(block);
    const free = await Promise.all(Object.values(ports).flat().map(isPortFree));
    if (free.every(Boolean)) return ports;
  }
  throw new Error(`no ${blockSize} free ports in a row between ${firstBlock} and ${lastBlock}`);
}
