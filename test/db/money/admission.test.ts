/** The admission of the database is that of core/money/holds.ts (G4), for any sums and any call. */
import { type AdmittedCall, type BudgetOutlook, isAdmitted } from '@capstan/core/money/holds';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { useDatabase } from '../../support/database.ts';
import { isLong } from '../../support/long.ts';

const { db } = useDatabase();

interface Admission {
  readonly budget: BudgetOutlook;
  readonly call: AdmittedCall;
}

const anyNano = fc.integer({ min: 0, max: 2_000 });
const anyOutlook = fc.record({ mean: anyNano, variance: fc.integer({ min: 0, max: 90_000 }) });

/** A budget near its limit: with calls that grow, or with none. */
const anyBudget: fc.Arbitrary<BudgetOutlook> = fc
  .record({ limitNano: fc.integer({ min: 0, max: 6_000 }), spentNano: anyNano, heldNano: anyNano })
  .chain((sums) =>
    fc.option(anyOutlook).map((grown) => ({
      ...sums,
      expected: grown === null || grown.mean === sums.heldNano ? { mean: sums.heldNano, variance: 0 } : grown,
    })),
  );

const anyCall: fc.Arbitrary<AdmittedCall> = fc.record({
  firstNano: fc.integer({ min: 1, max: 2_000 }),
  riskNano: fc.constant(0),
  expected: fc.option(anyOutlook),
});

/** One statement asks the database about all of them. @returns whether it admits each */
async function askDatabase(admissions: readonly Admission[]): Promise<readonly boolean[]> {
  const rows = admissions.map(({ budget: { limitNano, spentNano, heldNano, expected }, call }, at) => ({
    scope: `x${String(at).padStart(6, '0')}`,
    limit_nano: limitNano,
    spent_nano: spentNano,
    reserved_nano: heldNano,
    rest_nano: expected.mean - heldNano,
    variance: expected.variance,
    wanted: call.firstNano,
    wanted_rest: call.expected === null ? 0 : call.expected.mean - call.firstNano,
    wanted_variance: call.expected?.variance ?? 0,
  }));
  await db('budget').where('scope', 'like', 'x%').delete();
  await db.raw(
    `insert into budget (scope, window_start, limit_nano, spent_nano, reserved_nano, rest_nano, variance)
     select scope, '-infinity', limit_nano, spent_nano, reserved_nano, rest_nano, variance
     from json_populate_recordset(null::budget, ?)`,
    [JSON.stringify(rows)],
  );
  const answers = await db.raw<{ rows: { is_admitted: boolean }[] }>(
    `select apply_budgets(array[(r.scope, '-infinity', 0, 0, r.wanted, 0, 0, r.wanted_rest, r.wanted_variance)::budget_move],
       true, 0) is null as is_admitted
     from json_to_recordset(?) r (scope text, wanted bigint, wanted_rest bigint, wanted_variance double precision)
     order by r.scope`,
    [JSON.stringify(rows)],
  );
  return answers.rows.map(({ is_admitted }) => is_admitted);
}

it('admits a call where the rule does, and no other', async () => {
  const anyAdmission = fc.record({ budget: anyBudget, call: anyCall });
  const admissions = fc.sample(anyAdmission, isLong ? 20_000 : 2_000);
  const ruled = admissions.map(({ budget, call: { firstNano, expected } }) =>
    isAdmitted(budget, firstNano, expected ?? { mean: firstNano, variance: 0 }),
  );
  const asked = await askDatabase(admissions);
  const differing = admissions.filter((_, at) => asked[at] !== ruled[at]);
  expect(differing.slice(0, 3)).toEqual([]);
  for (const verdict of [true, false]) {
    expect(ruled.filter((is) => is === verdict).length).toBeGreaterThan(admissions.length / 10);
  }
});
