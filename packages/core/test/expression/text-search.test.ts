import fc from 'fast-check';
import { expect, it } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { includesText } from '../../src/expression/compare.ts';

it('finds what String.includes finds', () => {
  const text = (lengths: { minLength: number; maxLength: number }) =>
    fc.string({ unit: fc.constantFrom('a', 'b', '😀'), ...lengths });
  const cut = fc.tuple(
    text({ minLength: 0, maxLength: 200 }),
    fc.nat(),
    fc.nat({ max: 120 }),
    text({ minLength: 0, maxLength: 1 }),
  );
  fc.assert(
    fc.property(cut, ([whole, from, length, more]) => {
      const start = from % (whole.length + 1);
      for (const wanted of [whole.slice(start, start + length), whole.slice(start, start + length) + more]) {
        expect(includesText(whole, wanted)).toBe(whole.includes(wanted));
      }
    }),
    { numRuns: runs(400) },
  );
  expect(includesText('ab'.repeat(100), `${'ab'.repeat(60)}a`)).toBe(true);
  expect(includesText(`${'a'.repeat(99)}b`, `${'a'.repeat(40)}ba`)).toBe(false);
});
