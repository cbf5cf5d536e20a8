/**
 * Processor time that the money statement itself takes of its own connection, for a call that a project's day holds:
 * beside the server's calls it shows whether the statement slows down while tables grow.
 */
import { readFileSync } from 'node:fs';
import { settleAndClaim } from '../../src/db/attempt/attempt.ts';
import { connectDatabase } from '../../src/db/connect.ts';
import { median } from '../engine/statistics.ts';
import { prepareCalls } from '../hot-path/calls.ts';

/** A connection plans and fills its caches first. */
const warmUp = 200;
const rounds = 9;
const callsOfRound = 100;

export interface StatementCost {
  /** µs of Postgres' processor, with the settlement. */
  measure(): Promise<number>;
  close(): Promise<void>;
}

function readProcessorUs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1_000;
}

/** The claims are of a project of their own, which has a budget of the day. */
export async function openStatementCost(databaseUrl: string): Promise<StatementCost> {
  const db = connectDatabase(databaseUrl, 1);
  const make = await prepareCalls(db);
  const { rows } = await db.raw<{ rows: [{ pid: number }] }>('select pg_backend_pid() as pid');
  const backend = rows[0].pid;
  const play = async (count: number): Promise<void> => {
    for (const { claim, end } of await make('paid', count)) {
      const { claims } = await settleAndClaim(db, { ends: [], claims: [claim] }, true);
      const { ends } = await settleAndClaim(db, { ends: [end], claims: [] }, true);
      if (claims[0]?.outcome !== 'claimed' || ends[0] !== 'settled')
        throw new Error(`a call was not claimed and settled: ${JSON.stringify({ claims, ends })}`);
    }
  };
  return {
    measure: async () => {
      await play(warmUp);
      const costs: number[] = [];
      for (let round = 0; round < rounds; round++) {
        const from = readProcessorUs(backend);
        await play(callsOfRound);
        costs.push((readProcessorUs(backend) - from) / callsOfRound);
      }
      return median(costs);
    },
    close: () => db.destroy(),
  };
}
