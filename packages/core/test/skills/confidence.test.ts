import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  confidenceOf,
  confidenceRules,
  formatConfidence,
  listSkills,
  lowerBound,
  mayApplyAtLevel0,
  presentationOf,
  rankSkills,
  shouldFlag,
} from '../../src/skills/confidence.ts';
import { aSkill } from './a-skill.ts';

function counts(success_count: number, failure_count: number) {
  return { success_count, failure_count };
}

describe('lowerBound', () => {
  it.each([
    [0, 0, 0],
    [1, 0, 0.5854],
    [2, 0, 0.7385],
    [45, 5, 0.8585],
    [1, 1, 0.2443],
    [0, 3, 0],
  ])('%i of successes and %i of failures give %d', (success, failure, bound) => {
    expect(lowerBound(counts(success, failure))).toBeCloseTo(bound, 4);
  });

  it('ranks one success of one below 45 of 50', () => {
    expect(lowerBound(counts(1, 0))).toBeLessThan(lowerBound(counts(45, 5)));
  });

  it('stays below the ratio, and rises with every success', () => {
    fc.assert(
      fc.property(fc.nat(10_000), fc.nat(10_000), (success, failure) => {
        const bound = lowerBound(counts(success, failure));
        expect(bound).toBeGreaterThanOrEqual(0);
        expect(bound).toBeLessThanOrEqual(confidenceOf(counts(success, failure)));
        expect(lowerBound(counts(success + 1, failure))).toBeGreaterThan(bound);
      }),
    );
  });
});

describe('the order of skills', () => {
  const newborn = aSkill({ id: 'newborn', ...counts(1, 0), confidence: 1, last_used: 9 });
  const proven = aSkill({ id: 'proven', ...counts(45, 5), confidence: 0.9, last_used: 5 });
  const recent = aSkill({ id: 'recent', ...counts(45, 5), confidence: 0.9, last_used: 7 });
  const other = aSkill({ id: 'another', ...counts(45, 5), confidence: 0.9, last_used: 7 });
  const all = [newborn, proven, recent, other];
  const ids = (skills: readonly { id: string }[]) => skills.map(({ id }) => id);

  it('ranks by lower bound, then recency, then id, and picks three', () => {
    expect(ids(rankSkills(all))).toEqual(['another', 'recent', 'proven', 'newborn']);
    expect(ids(rankSkills(all).slice(0, confidenceRules.injected))).toEqual(['another', 'recent', 'proven']);
  });

  it('lists by confidence, then recency', () => {
    expect(ids(listSkills(all))).toEqual(['newborn', 'another', 'recent', 'proven']);
  });
});

describe('what a skill may do', () => {
  const proven = aSkill({ ...counts(45, 5), template: '[]' });

  it('is an instruction when proven, and a hint otherwise', () => {
    expect(presentationOf(proven)).toBe('instruction');
    for (const change of [counts(1, 0), { flagged: true }, { trust: 'candidate' as const }]) {
      expect(presentationOf({ ...proven, ...change })).toBe('hint');
    }
  });

  it('applies at level 0 whatever its confidence, but only active, unflagged, trusted and with a template', () => {
    expect(mayApplyAtLevel0({ ...proven, ...counts(1, 4) })).toBe(true);
    const changes = [
      { state: 'retired' as const },
      { flagged: true },
      { trust: 'candidate' as const },
      { template: undefined },
    ];
    for (const change of changes) expect(mayApplyAtLevel0({ ...proven, ...change })).toBe(false);
  });

  it.each([
    [1, 2, 3, true],
    [0, 2, 2, false],
    [2, 2, 4, false],
    [0, 9, 0, false],
  ])('%i successes and %i failures in %i uses: flagged is %s', (success, failure, uses, expected) => {
    expect(shouldFlag({ ...counts(success, failure), uses })).toBe(expected);
  });

  it('shows a confidence in whole per cent', () => {
    expect([0, 5 / 6, 1].map(formatConfidence)).toEqual(['0 %', '83 %', '100 %']);
  });
});
