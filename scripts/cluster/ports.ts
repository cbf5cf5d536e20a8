/**
 * The ports of a cluster: one block below those that the system gives to clients, so that a part that is started again
 * finds its own free. Both Temporal nodes have the same ones, on addresses of their own.
 */
import { isPortFree } from '../../src/dev/ports.ts';

const offsets = {
  api: 0,
  server1: 1,
  server2: 2,
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
  metricsServer1: 31,
  metricsServer2: 32,
  metricsWorker1: 33,
  metricsWorker2: 34,
} as const;

export type ClusterPorts = Readonly<Record<keyof typeof offsets, number>>;

const firstBlock = 17_400;
const lastBlock = 30_000;
const blockSize = 50;

/** @throws Error when no whole block is free */
export async function chooseClusterPorts(): Promise<ClusterPorts> {
  for (let block = firstBlock; block <= lastBlock; block += blockSize) {
    const free = await Promise.all(Object.values(offsets).map((offset) => isPortFree(block + offset)));
    if (!free.every(Boolean)) continue;
    const ports = Object.entries(offsets).map(([name, offset]) => [name, block + offset]);
    return Object.fromEntries(ports) as ClusterPorts;
  }
  throw new Error(`no ${blockSize} free ports in a row between ${firstBlock} and ${lastBlock}`);
}
