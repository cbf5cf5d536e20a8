/** Kills one part of a cluster after the other, each only when the one before is back: never two at once. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from '../cluster/start-cluster.ts';

export interface Kills {
  readonly parts: readonly string[];
  readonly signal: NodeJS.Signals;
  /** From the return of one to the end of the next. */
  readonly calmMs: number;
  /** Whether there is nothing more to disturb. */
  readonly isOver: () => boolean;
  /** So many are killed whatever is over. Default 1. */
  readonly atLeast?: number;
}

/** @returns seconds from each end to the return, by the order of the kills */
export async function killInTurn(
  cluster: Pick<Cluster, 'kill' | 'ready'>,
  { parts, signal, calmMs, isOver, atLeast = 1 }: Kills,
): Promise<readonly number[]> {
  const away: number[] = [];
  const isEnough = (): boolean => isOver() && away.length >= atLeast;
  while (!isEnough()) {
    const part = parts[away.length % parts.length] ?? '';
    await sleep(calmMs);
    if (isEnough()) break;
    const from = performance.now();
    await cluster.kill(part, signal);
    await cluster.ready(part);
    away.push((performance.now() - from) / 1_000);
  }
  return away;
}
