/** Chat completions that begin at a steady pace, whether or not earlier ones have ended. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import type { System } from '../router/systems.ts';

const mostOpen = 256;

export interface Pace {
  readonly perSecond: number;
  readonly durationMs: number;
}

/** @returns how many were made @throws Error when one fails, or when the pace is not kept */
export async function callSteadily(
  { origin, path, headers, body }: Pick<System, 'origin' | 'path' | 'headers' | 'body'>,
  { perSecond, durationMs }: Pace,
): Promise<number> {
  const pool = new Pool(origin, { connections: mostOpen, pipelining: 1 });
  const open = new Set<Promise<void>>();
  let fault: unknown = null;
  const call = async (): Promise<void> => {
    const answer = await pool.request({ path, method: 'POST', headers, body });
    const text = await answer.body.text();
    if (answer.statusCode !== 200)
      throw new Error(`a call answered ${answer.statusCode}: ${text.slice(0, 300)}`);
  };
  const begin = (): void => {
    const made: Promise<void> = call()
      .catch((thrown: unknown) => {
        fault ??= thrown;
      })
      .finally(() => open.delete(made));
    open.add(made);
  };
  const began = performance.now();
  const count = Math.round((perSecond * durationMs) / 1_000);
  for (let n = 0; n < count && fault === null; n++) {
    const early = began + (n * 1_000) / perSecond - performance.now();
    if (early > 1) await sleep(early);
    while (open.size >= mostOpen) await Promise.race(open);
    begin();
  }
  await Promise.all(open);
  await pool.close();
  if (fault !== null) throw fault;
  const tookMs = performance.now() - began;
  if (tookMs > durationMs * 1.1 + 1_000)
    throw new Error(
      `${count} calls took ${(tookMs / 1_000).toFixed(0)} s instead of ${durationMs / 1_000} s`,
    );
  return count;
}
