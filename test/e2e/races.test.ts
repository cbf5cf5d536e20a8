/** A race of paid calls: what it calls off stops soon, and costs what it used. */
import type { Run } from '@capstan/core/contracts/run';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { answer, type Exec, type Instance, startInstance } from '../support/fleet.ts';
import { isLong } from '../support/long.ts';
import { type SharedCapstan, shareCapstan } from '../support/shared-capstan.ts';
import { waitFor } from '../support/wait.ts';

const runners = ['a', 'b', 'c', 'd', 'e'];
const rateUsd = 0.01;
const name = 'race-runner';

let capstan: SharedCapstan;
let db: Db;
let instance: Instance;
/** Answers the calls of `c`, when all five have come; null: the others are called off or have failed. */
let atOnce: (() => void) | null = null;
const closed = new Map<string, number>();
let wonAt = 0;

function begin(exec: Exec, response: Parameters<Instance['handle']>[1]): void {
  const key = String(exec.input.who);
  response.once('close', () => closed.set(key, performance.now()));
  if (key === 'c') {
    atOnce = () => {
      wonAt = performance.now();
      answer(response, 200, { ok: true, output: { who: key } });
    };
  }
  if (instance.execs.length === runners.length) atOnce?.();
}

beforeAll(async () => {
  capstan = await shareCapstan();
  db = connectDatabase(capstan.databaseUrl, 2);
  instance = await startInstance(capstan, {
    name,
    cost_model: { type: 'per_second', rate_usd: rateUsd },
    tags: [],
    stops: true,
  });
  instance.handle = begin;
});
afterAll(async () => {
  await instance?.stop();
  await db?.destroy();
});

const one = { capability: name, retry: { max: 0 }, timeout: '10m' };
const branches = [
  ...runners.map((who) => ({ id: who, ...one, input: { who } })),
  { id: 'first', first: 1, depends_on: runners, set: { who: '{{ steps.c.output.who ?? "" }}' } },
];
const items = [
  { id: 'first', ...one, for_each: { items: runners, enough: 1 }, input: { who: '{{ item }}' } },
];

async function race(steps: readonly object[]): Promise<Run> {
  instance.execs.length = 0;
  closed.clear();
  const definition = { pipeline: 'race', version: String(steps.length), steps };
  const { body, status } = await capstan.request<Run>('POST', '/v1/runs', { definition, job: {} });
  expect(status).toBe(202);
  return capstan.ended(body.run_id, 60_000);
}

interface PaidAttempt {
  readonly who: string;
  readonly state: string;
  readonly certainty: string;
  readonly settled_nano: string;
  readonly duration_ms: number;
  readonly booked: string;
}

/** The attempts of a run, each with what the ledger has for it. */
async function readAttempts(runId: string): Promise<readonly PaidAttempt[]> {
  const { rows } = await db.raw(
    `select a.step_id || coalesce(nullif(a.item, 0)::text, '') as who, a.state, a.certainty, a.settled_nano, a.duration_ms,
       (select coalesce(sum(amount_nano) filter (where kind = 'settle'), 0) from ledger_entry l
        where l.attempt_id = a.attempt_id)::text as booked
     from attempt a where a.run_id = ? order by 1`,
    [runId],
  );
  return rows;
}

describe.each([
  ['branches', branches, 2, 'c'],
  ['items', items, 1, '3'],
])('of five paid %s', (_, steps, succeeded, winner) => {
  it('the first success calls the others off; each is settled with what it used, and the ledger is exact', async () => {
    const run = await race(steps);
    expect(run.state).toBe('succeeded');
    await waitFor('all five calls to be over', async () => closed.size === runners.length);
    const attempts = await waitFor('all to be settled', async () => {
      const rows = await readAttempts(run.run_id);
      return rows.every(({ settled_nano }) => settled_nano !== null) ? rows : null;
    });
    expect(attempts).toHaveLength(runners.length);
    for (const { certainty, settled_nano, duration_ms, booked } of attempts) {
      // per second, exactly as long as it took, to the microsecond that is stored
      const used = duration_ms * rateUsd * 1e6;
      expect(Math.abs(Number(settled_nano) - used)).toBeLessThan(rateUsd * 1e6);
      expect({ certainty, booked }).toEqual({ certainty: 'exact', booked: settled_nano });
    }
    const { rows: states } = await db.raw(
      `select state, error ->> 'code' as code, count(*)::int as count from step
       where run_id = ? and (item > 0 or items is null) group by 1, 2 order by 1`,
      [run.run_id],
    );
    expect(states).toEqual([
      { state: 'cancelled', code: 'enough', count: 4 },
      { state: 'succeeded', code: null, count: succeeded },
    ]);
    const sum = attempts.reduce((total, { settled_nano }) => total + Number(settled_nano), 0);
    expect(run.cost_usd).toBeCloseTo(sum / 1e9, 9);
    const { rows: events } = await db.raw(
      `select type, coalesce(item::text, step_id) as who from event
       where run_id = ? and type in ('step.succeeded', 'step.cancelled') order by xid, id`,
      [run.run_id],
    );
    expect(events[0]).toEqual({ type: 'step.succeeded', who: winner });
    expect(events.filter(({ type }: { type: string }) => type === 'step.cancelled')).toHaveLength(4);
    const late = [...closed].map(([who, at]) => (who === 'c' ? '' : `${who} ${Math.round(at - wonAt)} ms`));
    const costs = attempts.map(({ who, settled_nano }) => `${who} ${Number(settled_nano) / 1e9} USD`);
    if (isLong) console.log(`closed after the first answer: ${late.join(' ')}; cost: ${costs.join(', ')}`);
  });
});
