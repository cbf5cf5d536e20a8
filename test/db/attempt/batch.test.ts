import type { Knex } from 'knex';
import { describe, expect, it } from 'vitest';
import { type AttemptBatch, type Claim, settleAndClaim } from '../../../src/db/attempt/attempt.ts';
import { newId } from '../../../src/parts/ids.ts';
import { useDatabase } from '../../support/database.ts';
import { aClaim, anEnd, anInstance, aRun, claimAttempts } from '../../support/factories.ts';

const { db } = useDatabase(2);

describe('a turn', () => {
  it.each(['rising', 'falling'])('gives every step its own output: ids %s', async (order) => {
    const [run, instance] = [await aRun(db), await anInstance(db, { max_concurrency: 64 })];
    const claims = Array.from({ length: 20 }, (_, at) => aClaim(run, instance, { step_id: `s${at}` }));
    await claimAttempts(db, claims);
    const sign = order === 'rising' ? 1 : -1;
    const ends = claims
      .toSorted((one, other) => sign * (one.attempt_id < other.attempt_id ? -1 : 1))
      .map((claim) => anEnd(claim, { output: { of: claim.step?.step_id ?? '' } }));
    await settleAndClaim(db, { ends, claims: [] }, true);
    const rows = await db('step').where({ run_id: run.run_id }).select('step_id', 'output');
    expect(rows.map(({ step_id, output }) => [step_id, output.of])).toEqual(
      rows.map(({ step_id }) => [step_id, step_id]),
    );
    expect(rows).toHaveLength(20);
  });

  it('reads no more rows when there are many attempts', async () => {
    const [run, instance] = [await aRun(db), await anInstance(db, aPrice)];
    const aPaid = (): Claim => aClaim(run, instance, { step: null, key: newId('call'), reserved_nano: 5n });
    const turn = (ended: Claim) => ({ ends: [anEnd(ended, { settled_nano: 5n })], claims: [aPaid()] });
    const [first, second] = [aPaid(), aPaid()];
    await claimAttempts(db, [first, second]);
    await db.transaction(async (trx) => {
      expect(await readRows(trx, turn(first))).toBeLessThan(60);
      await addAttempts(trx, second);
      expect(await readRows(trx, turn(second))).toBeLessThan(60);
    });
  });

  it('reads no more rows when there are many steps, also by a plan that was made when there were none', async () => {
    const [run, instance] = [await aRun(db), await anInstance(db, aPrice)];
    const [one, two, three] = ['s1', 's2', 's3'].map((step_id) =>
      aClaim(run, instance, { step_id, reserved_nano: 5n }),
    ) as [Claim, Claim, Claim];
    await db.transaction(async (trx) => {
      const direct = aClaim(run, instance, { step: null, key: newId('call'), reserved_nano: 5n });
      await claimAttempts(trx, [direct]);
      await addAttempts(trx, direct);
      await trx.raw('analyze attempt');
      await trx.raw('discard plans');
      await readRows(trx, { ends: [], claims: [one] });
      await readRows(trx, { ends: [anEnd(one, { settled_nano: 5n })], claims: [two] });
      await trx.raw(
        `insert into step (run_id, step_id, state) select ?, 'many ' || n, 'succeeded' from generate_series(1, 3000) n`,
        [run.run_id],
      );
      const next = { ends: [anEnd(two, { settled_nano: 5n })], claims: [three] };
      expect(await readRows(trx, next)).toBeLessThan(80);
    });
  });
});

const aPrice = { cost_type: 'per_call', rate_usd: 1, max_concurrency: 9 } as const;

/** Rows of all tables that a turn reads. */
async function readRows(trx: Knex.Transaction, turn: AttemptBatch): Promise<number> {
  const readSoFar = async (): Promise<number> => {
    const { rows } = await trx.raw(
      'select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int as read from pg_stat_xact_user_tables',
    );
    return rows[0].read;
  };
  const before = await readSoFar();
  const { ends, claims } = await settleAndClaim(trx, turn, true);
  expect(ends).toEqual(turn.ends.map(() => 'settled'));
  expect(claims.map(({ outcome }) => outcome)).toEqual(turn.claims.map(() => 'claimed'));
  return (await readSoFar()) - before;
}

async function addAttempts(trx: Knex.Transaction, { attempt_id }: Claim): Promise<void> {
  await trx.raw(
    `insert into attempt select (jsonb_populate_record(a, jsonb_build_object('attempt_id', a.attempt_id || n,
       'key', 'many ' || n, 'state', 'settled', 'settled_nano', 5))).*
     from attempt a, generate_series(1, 1500) n where a.attempt_id = ?`,
    [attempt_id],
  );
}
