/** Kills one part of a cluster after the other, each only when the one before is back: never two at once. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from '../cluster/start-cluster.ts';

const calmMs = 3_000;

/** @returns the parts that were killed, until there was nothing more to disturb */
export async function killInTurn(
  cluster: Pick<Cluster, 'kill' | 'ready'>,
  parts: readonly string[],
  isOver: () => boolean,
): Promise<readonly string[]> {
  const killed: string[] = [];
  for (let turn = 0; !isOver(); turn += 1) {
    const part = parts[turn % parts.length] ?? '';
    await sleep(calmMs);
    if (isOver()) break;
    const from = performance.now();
    await cluster.kill(part, 'SIGKILL');
    await cluster.ready(part);
    killed.push(part);
    console.log(`    killed ${part}; back after ${((performance.now() - from) / 1000).toFixed(1)} s`);
  }
  return killed;
}
