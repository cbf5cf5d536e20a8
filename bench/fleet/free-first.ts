/**
 * A night's batch on one free slot, beside a hosted instance that costs: how much of the time the free slot is busy, and
 * how often calls were called from their line without a result.
 */
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { request } from '../router/register.ts';
import type { CapstanServer } from '../router/systems.ts';
import { startBoxes } from './boxes.ts';
import { addPipeline, registerBox } from './live.ts';

export interface FreeFirst {
  /** Part of the time from the first call to the end of the last, in which the free slot worked. */
  readonly busy: number;
  /** Calls that the hosted instance got. */
  readonly paid: number;
  /** Most calls that were called without a result, of those in line at a moment. */
  readonly withoutResult: number;
}

const name = 'render';
const runs = 60;
const workMs = 1_000;

async function countWithoutResult(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ sum: number }>(
    'select coalesce(sum(calls), 0)::int as sum from queued_call',
  );
  return rows[0]?.sum ?? 0;
}

/** @param databaseUrl of the server */
export async function playFreeFirst(server: CapstanServer, databaseUrl: string): Promise<FreeFirst> {
  const boxes = await startBoxes(2, [{ name, affinity: null }]);
  const [free = '', hosted = ''] = boxes.endpoints.flat();
  const paid = { cost_model: { type: 'per_call', rate_usd: 1 }, max_concurrency: 10 };
  await registerBox(server, { name, endpoint: free });
  await registerBox(server, { name, endpoint: hosted, ...paid });
  await addPipeline(server, name);
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    for (let number = 0; number < runs; number++) {
      const job = { number, model: 'x', workMs, loadMs: 0 };
      const wish = { pipeline: name, version: '1', job, priority: 'batch', budget_ceiling_usd: 100 };
      await request(server, 'POST', '/v1/runs', wish);
    }
    let withoutResult = 0;
    while (boxes.seen.calls.size < runs) {
      await pause(200);
      withoutResult = Math.max(withoutResult, await countWithoutResult(client));
    }
    const calls = [...boxes.seen.calls.values()];
    const beganAtMs = Math.min(...calls.map((call) => call.beganAtMs));
    const endedAtMs = Math.max(...calls.map((call) => call.beganAtMs + call.busyMs));
    const own = calls.filter(({ box }) => box === 0);
    const busyMs = own.reduce((sum, call) => sum + call.busyMs, 0);
    return { busy: busyMs / (endedAtMs - beganAtMs), paid: runs - own.length, withoutResult };
  } finally {
    await client.end();
    boxes.close();
  }
}
