import fc from 'fast-check';
import { expect, test } from 'vitest';
import { leastId, partedTables, partNamed, partsBetween } from '../../src/db/partitions.ts';

const moment = fc.date({
  min: new Date('2024-01-01'),
  max: new Date('2100-01-01'),
  noInvalidDate: true,
});
const span = fc.tuple(moment, fc.integer({ min: 0, max: 400 * 86_400_000 }));
const table = fc.constantFrom(...partedTables);

test('parts follow one another without gap or overlap, and hold the whole time', () => {
  fc.assert(
    fc.property(table, span, (name, [from, ms]) => {
      const until = new Date(from.getTime() + ms);
      const parts = partsBetween(name, from, until);
      for (const [at, part] of parts.entries()) {
        expect(part.from < part.to).toBe(true);
        if (at > 0) expect(part.from).toBe(parts[at - 1]?.to);
      }
      expect(parts.at(-1)?.endsAt.getTime()).toBeGreaterThan(until.getTime());
      expect(parts.at(-2)?.endsAt.getTime() ?? 0).toBeLessThanOrEqual(until.getTime());
    }),
  );
});

test('an id that is made at a moment is in the part of that moment', () => {
  fc.assert(
    fc.property(moment, fc.stringMatching(/^7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/), (at, rest) => {
      const [part] = partsBetween('event', at, at);
      const id = `${leastId('run', at)}-${rest}`;
      expect(part !== undefined && part.from <= id && id < part.to).toBe(true);
    }),
  );
});

test('a part is known by its name, and nothing else is a part', () => {
  fc.assert(
    fc.property(table, moment, (name, at) => {
      const [part] = partsBetween(name, at, at);
      expect(partNamed(name, part?.name ?? '')).toEqual(part);
    }),
  );
  expect(partNamed('event', 'event_default')).toBeNull();
  expect(partNamed('event', 'event_20261124')).toBeNull(); // a Tuesday
  expect(partNamed('ledger_entry', 'ledger_entry_20261301')).toBeNull();
});

test('a week begins on Monday, a month on its first day', () => {
  const at = new Date('2026-11-22T23:59:59.999Z');
  expect(partsBetween('event', at, at)).toMatchObject([{ name: 'event_20261116' }]);
  expect(partsBetween('ledger_entry', at, at)).toMatchObject([
    { name: 'ledger_entry_20261101', from: '2026-11-01', to: '2026-12-01' },
  ]);
});
