import { expect, it } from 'vitest';
import { LedgerKind } from '../../src/contracts/money.ts';
import { Ambiguity, AttemptState, Awaiting, StepState } from '../../src/contracts/run-step.ts';
import { useDatabase } from '../support/database.ts';

const { db } = useDatabase();

it.each<[table: string, column: string, values: readonly string[]]>([
  ['attempt', 'state', AttemptState.options],
  ['attempt', 'certainty', ['exact', 'estimated']],
  ['attempt', 'ambiguity', Ambiguity.options],
  ['ledger_entry', 'kind', LedgerKind.options],
  ['ledger_entry', 'certainty', ['exact', 'estimated']],
  // A pending step has no row.
  ['step', 'state', StepState.options.filter((state) => state !== 'pending')],
  ['step', 'awaiting', Awaiting.options],
])('the check of %s.%s takes the values of the contract, and no other', async (table, column, values) => {
  const { rows: checks } = await db.raw<{ rows: { relation: string; is_valid: boolean; check: string }[] }>(
    `select conrelid::regclass::text as relation, convalidated as is_valid, pg_get_expr(conbin, conrelid) as check
     from pg_constraint where conname = ? order by conparentid`,
    [`${table}_${column}_check`],
  );
  expect(checks.map(({ relation }) => relation)).toContain(table);
  for (const { check, is_valid } of checks) {
    const { rows } = await db.raw(
      `select array_agg(${column}) as taken from unnest(?::text[]) v (${column}) where ${check}`,
      [[...values, 'other', '']],
    );
    expect({ is_valid, taken: rows[0].taken }).toEqual({ is_valid: true, taken: [...values] });
  }
});
