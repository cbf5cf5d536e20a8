import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import type { StepState } from '../../src/contracts/run-step.ts';
import { type FormerItem, isKeptItem, pairItems, placeListed } from '../../src/run/kept-items.ts';

/** `a+ b- c+`: inputs of items in order, with a result or without. */
function former(text: string): FormerItem[] {
  return text.split(' ').map((word, index) => ({
    item: index + 1,
    input: word.slice(0, -1),
    state: word.endsWith('+') ? 'succeeded' : 'failed',
  }));
}

const anyFormer = fc.array(
  fc.record({
    input: fc.constantFrom('a', 'b', 'c'),
    state: fc.constantFrom<StepState>('reused', 'failed', 'skipped'),
  }),
  { maxLength: 12 },
);

it('an item does not happen again if it succeeded, was reused or skipped', () => {
  const states: StepState[] = ['succeeded', 'reused', 'skipped', 'failed', 'unknown', 'cancelled', 'pending'];
  expect(states.filter((state) => isKeptItem({ state }))).toEqual(['succeeded', 'reused', 'skipped']);
});

describe('items of a repeated step', () => {
  it.each<[string, string, (string | undefined)[], (number | undefined)[]]>([
    ['the same list', 'a+ b- c+', ['a', 'b', 'c'], [1, 2, 3]],
    ['another order', 'a+ b- c+', ['c', 'a', 'b'], [3, 1, 2]],
    ['fewer', 'a+ b- c+', ['c'], [3]],
    ['more', 'a+', ['x', 'a', 'y'], [undefined, 1, undefined]],
    ['of equal ones, that at the same place', 'a+ a+ a-', ['a', 'a', 'a'], [1, 2, 3]],
    [
      'of equal ones, that at the same place before any other',
      'b+ a+ a+',
      ['a', 'a', 'a'],
      [undefined, 2, 3],
    ],
    ['of equal ones, that with a result', 'a- a+', ['a'], [2]],
    ['an input that cannot be evaluated', 'a+ b+', [undefined, 'b'], [undefined, 2]],
  ])('pairs %s', (_, before, inputs, pairs) => {
    expect(pairItems(former(before), inputs)).toEqual(pairs);
  });

  it('pairs each once, by equal inputs only, and keeps as many results as it can', () => {
    fc.assert(
      fc.property(
        anyFormer,
        fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 12 }),
        (rows, inputs) => {
          const items = rows.map((row, index) => ({ item: index + 1, ...row }));
          const pairs = pairItems(items, inputs);
          const taken = pairs.filter((item) => item !== undefined);
          expect(new Set(taken).size).toBe(taken.length);
          for (const [index, item] of pairs.entries()) {
            if (item !== undefined) expect(items[item - 1]?.input).toBe(inputs[index]);
          }
          for (const input of ['a', 'b', 'c']) {
            const has = items.filter((one) => one.input === input && isKeptItem(one)).length;
            const wanted = inputs.filter((one) => one === input).length;
            const kept = taken.filter((item) => {
              const one = items[item - 1];
              return one?.input === input && isKeptItem(one);
            });
            expect(kept).toHaveLength(Math.min(has, wanted));
          }
        },
      ),
      { numRuns: runs(100) },
    );
  });
});

describe('items whose list is the output of another step', () => {
  const pairs = [
    { item: 1, former: 1 },
    { item: 2, former: 4 },
  ];

  it.each<[string, boolean, [number, number][]]>([
    [
      'go where their elements go',
      false,
      [
        [1, 1],
        [4, 2],
      ],
    ],
    ['stay at their places when they are counted', true, [[1, 1]]],
  ])('%s', (_, countsItems, places) => {
    expect([...placeListed(pairs, countsItems)]).toEqual(places);
  });
});
