import { expect, it, test } from 'vitest';
import { ceilingOfRun, readList, splitReference } from '../../../src/core/run/step-rules.ts';

it.each([
  ['what its caller allows', 2, 1, 1],
  ['what its definition allows', 2, undefined, 2],
  ['no ceiling when its caller says so', 2, null, null],
  ['no ceiling when nobody says one', undefined, undefined, null],
])('a run may cost %s', (_, defined, asked, expected) => {
  const definition = defined === undefined ? {} : { budget_ceiling_usd: defined };
  expect(ceilingOfRun(definition, asked)).toBe(expected);
});

test('a reference is a name and what stands behind the first @', () => {
  expect(splitReference('reel@1.0')).toEqual(['reel', '1.0']);
  expect(splitReference('reel@a@b')).toEqual(['reel', 'a@b']);
});

test('a list that cannot be worked out fails as its expression does', () => {
  const error = { code: 'expression_unresolved', message: 'job.clips does not exist' };
  expect(readList({ error })).toEqual({ error });
  expect(readList({ value: ['a'] })).toEqual({ value: ['a'] });
});
