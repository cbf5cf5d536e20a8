import { LedgerKind } from '@capstan/core/contracts/money';
import { Ambiguity, AttemptState, Awaiting, StepState } from '@capstan/core/contracts/run-step';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { instantText } from '../../src/db/statements.ts';
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

it('a time that JSON of the database holds has the form in which the API shows the same time', async () => {
  const lastSecond = Date.parse('9999-12-31T23:59:59Z') / 1_000;
  const firstSecond = Date.parse('0001-01-01T00:00:00Z') / 1_000;
  const time = fc.record({
    second: fc.integer({ min: firstSecond, max: lastSecond }),
    micros: fc.oneof(fc.constantFrom(0, 1, 999, 1_000, 999_999), fc.integer({ min: 0, max: 999_999 })),
  });
  const property = fc.asyncProperty(fc.array(time, { minLength: 1, maxLength: 500 }), async (times) => {
    const texts = times.map(
      ({ second, micros }) =>
        `${new Date(second * 1_000).toISOString().slice(0, 19)}.${String(micros).padStart(6, '0')}Z`,
    );
    const { rows } = await db.raw<{ rows: { at: Date; told: { at: string } }[] }>(
      `select at, json_build_object('at', ${instantText('at')}) as told from unnest(?::timestamptz[]) at`,
      [texts],
    );
    expect(rows.map(({ told }) => told.at)).toEqual(rows.map(({ at }) => at.toISOString()));
  });
  await fc.assert(property, { numRuns: 20 });
});
