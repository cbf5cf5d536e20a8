import { describe, expect, it } from 'vitest';
import { describeGrowth } from '../../src/money/held-words.ts';

const at = '2026-11-26T10:00:00.000Z';

describe('a reservation that grew', () => {
  it.each([
    ['it holds its worst case', {}, null],
    ['it has not grown yet', { held_usd: 0.001, pieces: [] }, null],
    ['once', { held_usd: 0.003, pieces: [{ at, usd: 0.002 }] }, 'grown to $0.003 in 1 piece'],
    [
      'in more pieces than are kept',
      {
        held_usd: 0.05,
        pieces: [
          { at, usd: 0.002 },
          { at, usd: 0.04, pieces: 9 },
        ],
      },
      'grown to $0.05 in 10 pieces',
    ],
  ])('is named: %s', (_, held, words) => {
    expect(describeGrowth(held)).toBe(words);
  });
});
