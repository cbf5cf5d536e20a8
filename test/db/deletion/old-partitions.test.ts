import { expect, test } from 'vitest';
import { countPart } from '../../../src/db/deletion/old-rows.ts';
import { partsBetween } from '../../../src/db/partitions.ts';
import { useDatabase } from '../../support/database.ts';

const { db } = useDatabase();

test("the rows of a small part are counted; those of a large one are the planner's estimate", async () => {
  const now = new Date();
  const [part] = partsBetween('attempt_choice', now, now);
  if (part === undefined) throw new Error('no part');
  const fill = (from: number, to: number) =>
    db.raw(
      `insert into attempt_choice
       select ?::text || '-7000-8000-' || lpad(n::text, 12, '0'), '{}' from generate_series(?::int, ?::int) n`,
      [part.from, from, to],
    );
  expect(await countPart(db, part)).toBe(0);
  await fill(1, 9_999);
  expect(await countPart(db, part)).toBe(9_999);
  await db.raw('alter table ?? set (autovacuum_enabled = false)', [part.name]);
  await fill(10_000, 12_000);
  await db.raw('analyze ??', [part.name]);
  expect(await countPart(db, part)).toBe(12_000);
  await fill(12_001, 15_000);
  expect(await countPart(db, part)).toBe(12_000); // they are not counted
});
