/**
 * How long maintenance takes to hold the budgets of three days against their calls, by call: of a day with a million runs
 * of three paid steps it has to read nine million within the minute that a statement of it may take.
 */
import { connectDatabase } from '../../src/db/connect.ts';
import { findDrift } from '../../src/db/money/budget-drift.ts';
import { median } from '../engine/statistics.ts';
import { say } from '../shared/run-bench.ts';
import type { Database } from '../shared/start-database.ts';
import type { Bench, Figure } from './figure.ts';
import { fillLedger } from './fill-ledger.ts';

const days = 3;
const mostMicroseconds = 3; // of which nine million are 27 s
const rounds = 5;

/** @returns milliseconds @throws Error when a budget does not match */
async function timeRounds({ databaseUrl }: Database): Promise<number[]> {
  const db = connectDatabase(databaseUrl, 1, 0);
  try {
    const times: number[] = [];
    for (let round = 0; round <= rounds; round++) {
      const startedAt = performance.now();
      const drift = await findDrift(db);
      if (drift.length > 0) throw new Error(`${drift.length} budgets differ from their attempts`);
      if (round > 0) times.push(performance.now() - startedAt); // the first reads what no cache holds
    }
    return times;
  } finally {
    await db.destroy();
  }
}

export async function measureReconciling({ isQuick, addDatabase }: Bench): Promise<Figure[]> {
  const database = await addDatabase('reconciling');
  const attempts = isQuick ? 100_000 : 1_000_000;
  await fillLedger({ ...database, attempts, days, hasLedger: false }, (share) =>
    say(`filled ${Math.round(share * 100)} %`),
  );
  const ms = median(await timeRounds(database));
  return [
    { name: `reconciling ${attempts} calls`, value: ms, unit: 'ms', bar: null },
    {
      name: 'of it each call',
      value: (ms * 1_000) / attempts,
      unit: 'µs',
      bar: { kind: '<=', limit: mostMicroseconds },
    },
  ];
}
