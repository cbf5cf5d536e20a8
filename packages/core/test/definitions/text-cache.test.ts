import { expect, it } from 'vitest';
import { createTextCache } from '../../src/definitions/text-cache.ts';

it('keeps what was used last, as much as the texts together may be long', () => {
  const cache = createTextCache<object>(10_000);
  const kept = (names: readonly string[]) => names.filter((name) => cache.get(name) !== undefined);
  for (const name of ['a', 'b', 'c']) cache.set(name, {}, 'x'.repeat(2_000));
  expect(kept(['c', 'b', 'a'])).toEqual(['c', 'b', 'a']);
  cache.set('d', {}, { steps: 'x'.repeat(2_000) });
  expect(kept(['a', 'b', 'c', 'd'])).toEqual(['a', 'b', 'd']);
  cache.set('whole', {}, 'x'.repeat(20_000));
  expect(kept(['a', 'b', 'd', 'whole'])).toEqual(['a', 'b', 'd']);
});

it('counts every entry, however short its text is', () => {
  const cache = createTextCache<object>(10_000);
  for (let n = 0; n < 100; n++) cache.set(`${n}`, {}, undefined);
  expect(cache.get('89')).toBeUndefined();
  expect(cache.get('90')).toBeDefined();
  expect(cache.get('99')).toBeDefined();
});
