import { expect, it, test } from 'vitest';
import { isTied, tieHash } from '../../src/routing/ranking.ts';

it.each([
  [1.01, 1, true],
  [1.011, 1, false],
  [1, 1, true],
  [0, 0, true],
  [1e-9, 0, false],
])('%d is tied with the least %d: %s', (value, least, tied) => {
  expect(isTied(value, least)).toBe(tied);
});

/** So that a stored decision is made again as it was, the numbers never change. */
it.each([
  [0, '', 2_872_998_923],
  [1, 'ins_a', 2_818_114_702],
  [7, '0192-abcdefgh', 3_736_265_418],
  [-1, 'b', 2_623_243_401],
])('the number of seed %d and %j is %d', (seed, id, hash) => {
  expect(tieHash(seed, id)).toBe(hash);
});

test('the end of an id is enough', () => {
  expect(tieHash(5, 'another-12345678')).toBe(tieHash(5, 'one-12345678'));
  expect(tieHash(5, 'one-12345678')).not.toBe(tieHash(5, 'one-02345678'));
});
