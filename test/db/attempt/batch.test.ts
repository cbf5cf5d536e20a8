import { describe, expect, it } from 'vitest';
import { type Claim, settleAndClaim } from '../../../src/db/attempt/attempt.ts';
import { newId } from '../../../src/services/ids.ts';
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
    const [run, instance] = [
      await aRun(db),
      await anInstance(db, { cost_type: 'per_call', rate_usd: 1, max_concurrency: 9 }),
    ];
    const aPaid = (): Claim => aClaim(run, instance, { step: null, key: newId('call'), reserved_nano: 5n });
    /** Rows of all tables that one turn with an end and a claim reads. */
    const readRows = (ended: Claim): Promise<number> =>
      db.transaction(async (trx) => {
        const readSoFar = async (): Promise<number> => {
          const { rows } = await trx.raw(
            'select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int as read from pg_stat_xact_user_tables',
          );
          return rows[0].read;
        };
        const before = await readSoFar();
        const turn = { ends: [anEnd(ended, { settled_nano: 5n })], claims: [aPaid()] };
        expect((await settleAndClaim(trx, turn, true)).ends).toEqual(['settled']);
        return (await readSoFar()) - before;
      });
    const [first, second] = [aPaid(), aPaid()];
    await claimAttempts(db, [first, second]);
    const few = await readRows(first);
    expect(few).toBeLessThan(60);
    await db.raw(
      `insert into attempt select (jsonb_populate_record(a, jsonb_build_object('attempt_id', 'att_many_' || n,
         'key', 'many ' || n, 'state', 'settled', 'settled_nano', 5))).*
       from attempt a, generate_series(1, 3000) n where a.attempt_id = ?`,
      [second.attempt_id],
    );
    expect(await readRows(second)).toBeLessThan(60);
  });
});
