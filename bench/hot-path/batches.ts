/**
 * Reservation and settlement of paid calls on one budget row, durable, by 32 callers: one statement per call against
 * the writer that sends together what waits. Both have to leave every account right.
 */
import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import {
  type AttemptEnd,
  type Claim,
  type ClaimResult,
  type EndResult,
  settleAndClaim,
} from '../../src/db/attempt/attempt.ts';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { type AttemptWriter, createAttemptWriter } from '../../src/parts/calls/attempt-writer.ts';
import { newId, newToken } from '../../src/parts/ids.ts';
import { median } from '../engine/statistics.ts';
import type { Bench, Figure } from './figure.ts';

const callers = 32;
const price = 100_000n;

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
    begins_step: false,
    known_failures: [],
    project_id,
    step: null,
    capability: 'paid',
    instance_id,
    run_id: null,
    must_be_idle: false,
    has_host: false,
    cost_type: 'per_call',
    rate_usd: 0.000_1,
    lease_ms: 30_000,
    reserved_nano: price,
    risk_nano: 0n,
    outlook: null,
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
    has_failed: false,
    settled_nano: price,
    certainty: 'exact',
    duration_ms: 1,
    asked_pause_ms: null,
    is_stopped: false,
    error: null,
    step_state: 'succeeded',
    output: undefined,
    event_data: {},
    model: null,
    tokens: null,
    content: null,
    step: null,
    keeps: null,
  };
}

interface Load {
  readonly make: () => Claim;
  readonly roundMs: number;
}

/** @returns pairs of a claim and its settlement per second */
async function measure(
  writer: Pick<AttemptWriter, 'claim' | 'settle'>,
  { make, roundMs }: Load,
): Promise<number> {
  const startedAt = performance.now();
  let pairs = 0;
  const caller = async (): Promise<void> => {
    while (performance.now() - startedAt < roundMs) {
      const claim = make();
      const { outcome } = await writer.claim(claim, true);
      if (outcome !== 'claimed') throw new Error(`a claim was ${outcome}`);
      if ((await writer.settle(anEnd(claim), true, false)) !== 'settled')
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

/** Both in every round, in turn the first. */
async function playRounds(db: Db, load: Load, rounds: number): Promise<{ one: number; together: number }[]> {
  const sides = { one: singly(db), together: createAttemptWriter({ db, logger: pino({ level: 'silent' }) }) };
  await measure(sides.one, load);
  await measure(sides.together, load);
  const played: { one: number; together: number }[] = [];
  for (let round = 0; round < rounds; round++) {
    const measured = { one: 0, together: 0 };
    const order = round % 2 === 0 ? (['one', 'together'] as const) : (['together', 'one'] as const);
    for (const name of order) measured[name] = await measure(sides[name], load);
    played.push(measured);
  }
  return played;
}

function toFigures(
  rounds: readonly { readonly one: number; readonly together: number }[],
  { drift, reserved }: { readonly drift: string; readonly reserved: string },
): Figure[] {
  const none: Figure['bar'] = { kind: '<=', limit: 0 };
  return [
    {
      name: 'pairs, one statement each',
      value: median(rounds.map(({ one }) => one)),
      unit: 'pairs/s',
      bar: null,
    },
    {
      name: 'pairs, batched',
      value: median(rounds.map((round) => round.together)),
      unit: 'pairs/s',
      bar: null,
    },
    {
      name: 'batched by one statement each',
      value: median(rounds.map(({ one, together }) => together / one)),
      unit: '×',
      bar: { kind: '>=', limit: 5 },
    },
    { name: 'drift of the budget rows', value: Math.abs(Number(drift)), unit: 'nano-USD', bar: none },
    { name: 'still reserved', value: Number(reserved), unit: 'nano-USD', bar: none },
  ];
}

export async function measureBatches({ addDatabase, isQuick }: Bench): Promise<Figure[]> {
  const { databaseUrl, projectId: project_id } = await addDatabase('batches');
  const db = connectDatabase(databaseUrl, callers);
  try {
    await db('project').where({ project_id }).update({ daily_limit_nano: '1000000000000000' });
    const instance = await insertInstance(db, project_id);
    const load = { make: () => aClaim(project_id, instance), roundMs: isQuick ? 1_000 : 3_000 };
    return toFigures(await playRounds(db, load, isQuick ? 3 : 9), await readDrift(db));
  } finally {
    await db.destroy();
  }
}
