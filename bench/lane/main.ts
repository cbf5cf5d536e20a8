/**
 * Reservation and settlement of paid calls on one budget row, durable, by 32 callers: one statement per call against
 * the lane that sends together what waits. `npm run bench:lane [-- --quick]`. Exit code 1 when the lane is not five
 * times as fast, or an account is wrong afterwards.
 */
import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import {
  type AttemptEnd,
  type Claim,
  type ClaimResult,
  type EndResult,
  settleAndClaim,
} from '../../src/db/attempt/attempt.ts';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { newId, newToken } from '../../src/services/ids.ts';
import { type AttemptWriter, createAttemptWriter } from '../../src/services/routing/attempt-writer.ts';
import { median } from '../engine/statistics.ts';
import { runBench } from '../shared/run-bench.ts';
import { startDatabase } from '../shared/start-database.ts';

const callers = 32;
const bar = 5;
const price = 100_000n;

const { values: options } = parseArgs({ options: { quick: { type: 'boolean', default: false } } });
const effort = options.quick ? { rounds: 3, roundMs: 1_000 } : { rounds: 9, roundMs: 3_000 };

function singly(db: Db): Pick<AttemptWriter, 'claim' | 'settle'> {
  return {
    claim: async (claim, isDurable) =>
      (await settleAndClaim(db, { ends: [], claims: [claim] }, isDurable)).claims[0] as ClaimResult,
    settle: async (end, isDurable) =>
      (await settleAndClaim(db, { ends: [end], claims: [] }, isDurable)).ends[0] as EndResult,
  };
}

async function insertInstance(db: Db, owner_project: string): Promise<string> {
  const endpoint = 'http://10.0.0.1:8100';
  const instance_id = newId('instance');
  await db('instance').insert({
    instance_id,
    owner_project,
    name: 'paid',
    version: '1',
    endpoint,
    tags: [],
    state: 'up',
    spec_url: `${endpoint}/spec`,
    health_url: `${endpoint}/health`,
    cost_type: 'per_call',
    rate_usd: 0.000_1,
    max_concurrency: 10_000,
  });
  return instance_id;
}

function aClaim(project_id: string, instance_id: string): Claim {
  const attempt_id = newId('attempt');
  return {
    attempt_id,
    token: newToken(),
    key: attempt_id,
    is_first: true,
    project_id,
    step: null,
    capability: 'paid',
    instance_id,
    must_be_idle: false,
    cost_type: 'per_call',
    rate_usd: 0.000_1,
    lease_ms: 30_000,
    reserved_nano: price,
    inputs: {},
    decision: {
      decision_id: randomUUID(),
      chosen: null,
      reason: 'bench',
      candidates: [],
      reserved_usd: 0.000_1,
      settled_usd: null,
    },
  };
}

function anEnd({ attempt_id, token }: Claim): AttemptEnd {
  return {
    attempt_id,
    token,
    state: 'settled',
    ambiguity: 'answered',
    counted: false,
    settled_nano: price,
    certainty: 'exact',
    duration_ms: 1,
    error: null,
    step_state: 'succeeded',
    output: undefined,
    event_data: {},
    is_step: false,
  };
}

async function measure(lanes: Pick<AttemptWriter, 'claim' | 'settle'>, make: () => Claim): Promise<number> {
  const startedAt = performance.now();
  let pairs = 0;
  const caller = async (): Promise<void> => {
    while (performance.now() - startedAt < effort.roundMs) {
      const claim = make();
      const { outcome } = await lanes.claim(claim, true);
      if (outcome !== 'claimed') throw new Error(`a claim was ${outcome}`);
      if ((await lanes.settle(anEnd(claim), true, false)) !== 'settled')
        throw new Error('a settlement was refused');
      pairs += 1;
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return (pairs * 1_000) / (performance.now() - startedAt);
}

/** Difference of the budget rows from the attempts behind them, nano-USD; and what is still reserved. */
async function readDrift(db: Db): Promise<{ drift: string; reserved: string }> {
  const { rows } = await db.raw<{ rows: [{ drift: string; reserved: string }] }>(
    `select sum(b.spent_nano - (select sum(settled_nano) from attempt))::text as drift,
       sum(b.reserved_nano)::text as reserved from budget b where b.window_start > '-infinity'`,
  );
  return rows[0];
}

async function bench(db: Db, project_id: string): Promise<boolean> {
  const instance = await insertInstance(db, project_id);
  const make = (): Claim => aClaim(project_id, instance);
  const sides = { one: singly(db), lane: createAttemptWriter(db) };
  await measure(sides.one, make);
  await measure(sides.lane, make);
  const rounds: { one: number; lane: number }[] = [];
  for (let round = 0; round < effort.rounds; round++) {
    const measured = { one: 0, lane: 0 };
    for (const name of round % 2 === 0 ? (['one', 'lane'] as const) : (['lane', 'one'] as const)) {
      measured[name] = await measure(sides[name], make);
    }
    rounds.push(measured);
  }
  const ratio = median(rounds.map(({ one, lane }) => lane / one));
  const { drift, reserved } = await readDrift(db);
  console.log(
    `${new Date().toISOString()}  Node ${process.version}  ${effort.rounds} rounds, ${callers} callers`,
  );
  console.log(`one statement per call   ${median(rounds.map(({ one }) => one)).toFixed(0)} pairs/s`);
  console.log(`batch lane               ${median(rounds.map(({ lane }) => lane)).toFixed(0)} pairs/s`);
  console.log(`ratio                    ${ratio.toFixed(2)}  >= ${bar}  ${ratio >= bar ? 'pass' : 'FAIL'}`);
  console.log(
    `drift ${drift} nano-USD, reserved ${reserved}  ${drift === '0' && reserved === '0' ? 'pass' : 'FAIL'}`,
  );
  return ratio >= bar && drift === '0' && reserved === '0';
}

await runBench(async (place) => {
  const { databaseUrl, projectId: project_id } = await startDatabase(place);
  const db = connectDatabase(databaseUrl, callers);
  await db('project').where({ project_id }).update({ daily_limit_nano: '1000000000000000' });
  const isMet = await bench(db, project_id);
  await db.destroy();
  return isMet;
});
