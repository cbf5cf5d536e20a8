/** Reads budgets for tests, and moves them in time. */
import type { Claim } from '../../src/db/attempt/attempt.ts';
import type { Db } from '../../src/db/connect.ts';
import { toJsonb } from '../../src/db/statements.ts';

export interface SeenBudget {
  readonly limit: string | null;
  readonly reserved: string;
  readonly spent: string;
}

/** The rows of scopes with this prefix, by scope; of several days, the last. */
export async function budgetsOf(db: Db, prefix: string): Promise<Record<string, SeenBudget>> {
  const rows = await db('budget')
    .whereLike('scope', `${prefix}%`)
    .orderBy(['scope', 'window_start'])
    .select('scope', 'limit_nano', 'reserved_nano', 'spent_nano');
  return Object.fromEntries(
    rows.map(({ scope, limit_nano, reserved_nano, spent_nano }) => [
      scope,
      { limit: limit_nano, reserved: reserved_nano, spent: spent_nano },
    ]),
  );
}

const claimsArray =
  'array(select jsonb_populate_record(null::claim_request, e) from jsonb_array_elements(?::jsonb) e)';

function toRequests(claims: readonly Claim[]): string {
  return toJsonb(
    claims.map(({ step, reserved_nano, risk_nano, outlook, ...claim }) => ({
      ...claim,
      ...step,
      reserved_nano: `${reserved_nano}`,
      risk_nano: `${risk_nano}`,
      expected_nano: outlook?.mean,
      variance: outlook?.variance,
    })),
  );
}

/** Maps a scope to its day at the given time. */
export async function daysAt(db: Db, claim: Claim, at: string): Promise<Record<string, string>> {
  const { rows } = await db.raw(
    `select scope, window_start::text as day from budget_demand(${claimsArray}, ?) order by scope`,
    [toRequests([claim]), at],
  );
  return Object.fromEntries(rows.map((row: { scope: string; day: string }) => [row.scope, row.day]));
}

/** Reserves at the given time. @returns the refusal or null */
export async function reserveAt(db: Db, claims: readonly Claim[], at: string) {
  const { rows } = await db.raw(`select charge_budgets('{}', '{}', '{}', ${claimsArray}, ?) as refusal`, [
    toRequests(claims),
    at,
  ]);
  return rows[0].refusal;
}

/** Moves earlier claims a day back. */
export async function passMidnight(db: Db): Promise<void> {
  await db.transaction(async (trx) => {
    await trx.raw('lock table budget in exclusive mode'); // a server may be opening one
    // Takes a detour, because the day before may be another row of the same budget.
    const days = `window_start > '-infinity' and scope not like 'budget:%'`; // their truth is the ledger, which stays
    await trx.raw(`update budget set window_start = window_start - 100001 where ${days}`);
    await trx.raw(`update budget set window_start = window_start + 100000 where ${days}`);
  });
  await db.raw(
    `update attempt set started_at = started_at - interval '1 day', budget_window = budget_window - 1
     where budget_window is not null`,
  );
}
