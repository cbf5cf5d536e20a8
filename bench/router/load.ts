/** Callers that ask again as soon as they are answered, on a connection each. */
import { Pool } from 'undici';
import type { System } from './systems.ts';

export interface Measured {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly perSecond: number;
  readonly calls: number;
}

async function ask(pool: Pool, { path, headers, body }: System): Promise<void> {
  const answer = await pool.request({ path, method: 'POST', headers, body });
  const text = await answer.body.text();
  if (answer.statusCode !== 200 || !text.includes('answer ')) {
    throw new Error(`${path} answered ${answer.statusCode}: ${text.slice(0, 300)}`);
  }
}

/** @throws Error when an answer is not the upstream's */
export async function measure(system: System, callers: number, durationMs: number): Promise<Measured> {
  const pool = new Pool(system.origin, { connections: callers, pipelining: 1 });
  const times: number[] = [];
  const startedAt = performance.now();
  const end = startedAt + durationMs;
  const caller = async (): Promise<void> => {
    for (let from = performance.now(); from < end; from = performance.now()) {
      await ask(pool, system);
      times.push(performance.now() - from);
    }
  };
  try {
    await Promise.all(Array.from({ length: callers }, caller));
  } finally {
    await pool.close();
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  times.sort((a, b) => a - b);
  const at = (share: number): number => times[Math.floor(times.length * share)] ?? Number.NaN;
  return { p50Ms: at(0.5), p99Ms: at(0.99), perSecond: times.length / seconds, calls: times.length };
}
