import { expect, it } from 'vitest';
import { findAnswerFault } from '../../src/call/outcome.ts';
import { expressionLimits } from '../../src/expression/language.ts';

const deepest = expressionLimits.valueNesting;

/** So many lists or objects inside one another. */
function nest(levels: number, around: (inner: unknown) => unknown): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level++) value = around(value);
  return value;
}

function asList(inner: unknown): unknown {
  return [0, inner];
}

function asObject(inner: unknown): unknown {
  return { inner };
}

it.each([1, -1.5e300, 'text', '', true, null, [], {}, [1, { a: [null, 'b'] }], { 'a/b': { '': 1 } }])(
  'finds nothing wrong with %j',
  (value) => {
    expect(findAnswerFault(value)).toBeNull();
  },
);

it.each([
  ['itself', Number.POSITIVE_INFINITY],
  ['in a list, behind others', [1, Number.NEGATIVE_INFINITY]],
  ['in an object in a list', [{ a: 1, b: Number.NaN }]],
])('refuses a number that is too large: %s', (_, value) => {
  expect(findAnswerFault(value)).toBe('holds a number that is too large; finite ones are allowed');
});

it.each([
  ['at the top', '{"__proto__": 1}'],
  ['below', '{"a": [{"__proto__": {}}]}'],
])('refuses the key __proto__ %s', (_, text) => {
  expect(findAnswerFault(JSON.parse(text))).toBe('holds the key __proto__, which is not allowed');
});

it('refuses a text that stands for a number elsewhere', () => {
  expect(findAnswerFault({ a: ['\u0000number:1'] })).toBe(
    'holds a text that begins with NUL and "number:", which is not allowed',
  );
});

it.each([
  ['lists', asList],
  ['objects', asObject],
])('takes %s as deep as is allowed, and no deeper', (_, around) => {
  expect(findAnswerFault(nest(deepest, around))).toBeNull();
  expect(findAnswerFault(nest(deepest + 1, around))).toBe(
    `nests deeper than the ${deepest} levels that are allowed`,
  );
});
