/**
 * Processor time that the money statement itself takes of its own connection, for a call that a project's day holds:
 * beside the server's calls it shows whether the statement slows down while tables grow.
 */
import { readFileSync } from 'node:fs';
import { settleAndClaim } from '../../src/db/attempt/attempt.ts';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { median } from '../engine/statistics.ts';
import { type Make, prepareCalls } from '../hot-path/calls.ts';

/** A connection plans and fills its caches first. */
const warmUp = 200;
const rounds = 9;
const callsOfRound = 100;

function readProcessorUs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1_000;
}

async function play(db: Db, make: Make, count: number): Promise<void> {
  for (const { claim, end } of await make('paid', count)) {
    const { claims } = await settleAndClaim(db, { ends: [], claims: [claim] }, true);
    const { ends } = await settleAndClaim(db, { ends: [end], claims: [] }, true);
    if (claims[0]?.outcome !== 'claimed' || ends[0] !== 'settled')
      throw new Error(`a call was not claimed and settled: ${JSON.stringify({ claims, ends })}`);
  }
}

/**
 * The claims are of a project of their own, which has a budget of the day, and on an instance that is new: the server
 * drops it later, since it has no heartbeat.
 * @returns µs of Postgres' processor for a claim with its settlement
 */
export async function measureStatement(databaseUrl: string): Promise<number> {
  const db = connectDatabase(databaseUrl, 1);
  try {
    const make = await prepareCalls(db);
    const { rows } = await db.raw<{ rows: [{ pid: number }] }>('select pg_backend_pid() as pid');
    const backend = rows[0].pid;
    await play(db, make, warmUp);
    const costs: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const from = readProcessorUs(backend);
      await play(db, make, callsOfRound);
      costs.push((readProcessorUs(backend) - from) / callsOfRound);
    }
    return median(costs);
  } finally {
    await db.destroy();
  }
}
