import { expect, it, test } from 'vitest';
import { mostItems } from '../../src/contracts/limits.ts';
import { refuseStep, toItems } from '../../src/run/step-rules.ts';

test('a list gives the items of a step, up to the most allowed', () => {
  expect(toItems([])).toEqual({ value: [] });
  const most = Array.from({ length: mostItems }, () => 1);
  expect(toItems(most)).toEqual({ value: most });
  expect(toItems([...most, 1])).toEqual({
    error: {
      code: 'too_many_items',
      message: `${mostItems + 1} items; at most ${mostItems} are allowed`,
    },
  });
});

it.each([
  [null, 'null'],
  ['a,b', 'a string'],
  [7, 'a number'],
])('%j is no list', (value, shown) => {
  expect(toItems(value)).toEqual({
    error: { code: 'expression_unresolved', message: `a list is needed, not ${shown}` },
  });
});

test('a step that could not be decided names the part of it', () => {
  expect(refuseStep('when', { code: 'expression_unresolved', message: 'no such step' })).toEqual({
    type: 'fail',
    error: { code: 'expression_unresolved', message: 'when: no such step' },
  });
});
