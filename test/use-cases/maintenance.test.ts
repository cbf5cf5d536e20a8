/** Each part records here which of its functions were called; only the statements on the database are real. */
import { expect, it } from 'vitest';
import { createDuties, type DutyParts } from '../../src/use-cases/maintenance.ts';
import { useDatabase } from '../support/database.ts';
import { aDeliveryCtx, forgetful, someDelivered } from '../support/delivery.ts';
import { idleParts } from '../support/maintenance.ts';

const { db } = useDatabase();

const parts: Required<DutyParts> = {
  ...idleParts,
  budgets: { announceMarks: async () => undefined, reconcile: async () => 0 },
  recheckPersons: () => undefined,
};

/** The same parts, and the names of those of their functions that were not called yet. */
function watch() {
  const unused = new Set<string>();
  const noting = <Value>(value: Value, name: string): Value => {
    if (typeof value === 'function') {
      unused.add(name);
      const call = (...given: unknown[]): unknown => {
        unused.delete(name);
        return value(...given);
      };
      return call as Value;
    }
    return Object.fromEntries(
      Object.entries(value as object).map(([key, of]) => [key, noting(of, `${name}.${key}`)]),
    ) as Value;
  };
  return { watched: noting(parts, 'parts'), unused };
}

it('uses every part that maintenance is given', async () => {
  const ctx = aDeliveryCtx(db);
  const { watched, unused } = watch();
  expect(unused).toContain('parts.budgets.reconcile');
  for (const { work, restMs } of Object.values(createDuties(ctx, watched))) {
    await work(() => false);
    restMs?.(1);
  }
  expect([...unused]).toEqual([]);
});

it('counts as a repair what Temporal had forgotten, whatever it is', async () => {
  await someDelivered(db, { runs: 1, ladders: 2, schedules: 3 });
  const duties = createDuties(aDeliveryCtx(db, forgetful), parts);
  const forgotten = Object.entries(duties).filter(([name]) => name.startsWith('forgotten'));
  const done = forgotten.map(async ([name, { everyMs, isRepair, work }]) => [
    name,
    everyMs,
    isRepair,
    await work(() => false),
  ]);
  expect(await Promise.all(done)).toEqual([
    ['forgotten_runs', 300_000, true, 1],
    ['forgotten_ladders', 300_000, true, 2],
    ['forgotten_schedules', 300_000, true, 3],
  ]);
});
