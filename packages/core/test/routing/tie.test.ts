import { expect, it, test } from 'vitest';
import { isTied, offer, type Ranking, settleTie, tieHash } from '../../src/routing/ranking.ts';
import type { RankedInstance, Residency } from '../../src/routing/types.ts';
import { anInstance } from './a-snapshot.ts';

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

test('R8: among equals, a full one that has the key comes after each that is free, whatever the seed', () => {
  const one = (id: string, isFull: boolean, isResident: boolean): RankedInstance => {
    const times = { warmMs: 1_000, loadMs: 0, leftMs: 0, pace: 1, usedAtMs: 5 };
    const residency: Residency = { key: 'k', isResident, isListed: false, isLearnt: true, ...times };
    const rank = { tier: 1, place: 1, costUsd: 0, waitMs: 1_000, countedMs: 1_000, score: 0 };
    return { instance: anInstance(id), ...rank, isFull, isTranslated: false, residency };
  };
  const ranking: Ranking = { first: [], near: [] };
  for (const each of [one('full', true, true), one('free', false, false)]) offer(ranking, each);
  const winners = Array.from({ length: 20 }, (_, seed) => settleTie(ranking, seed)?.winner);
  expect(new Set(winners.map((winner) => winner?.instance.instance_id))).toEqual(new Set(['free']));
});
