import { expect, it, test } from 'vitest';
import { isInRange, readRange } from '../../src/routing/filter.ts';

it.each([
  ['^1.2.0', '1.9.0', true],
  ['^1.2.0', '2.0.0', false],
  ['>=1 <3', '2.5.1', true],
  ['1.x', '1.0.0', true],
  ['=v1.2.3', '1.2.3', true],
  ['>=1.2.3beta', '1.2.3', true],
  ['^1.2.0', 'nightly', false],
  ['nightly', 'nightly', true],
  ['nightly', '1.0.0', false],
])('range %j, version %j: %s', (range, version, isIn) => {
  expect(isInRange(readRange(range), version)).toBe(isIn);
});

test('several ranges are kept beside each other', () => {
  const ranges = ['^5.1.0', '^6.1.0'].map(readRange);
  expect(['^5.1.0', '^6.1.0'].map(readRange).map((range, at) => range === ranges[at])).toEqual([true, true]);
});

test('a range is read once, and each of its answers worked out once', () => {
  const range = readRange('^7.1.0');
  expect(readRange('^7.1.0')).toBe(range);
  expect(isInRange(range, '7.2.0')).toBe(true);
  range.answers.set('7.2.0', false);
  expect(isInRange(range, '7.2.0')).toBe(false);
});

test('no more than 500 ranges are kept, and 500 answers of each', () => {
  const first = readRange('first');
  for (let at = 0; at < 500; at++) readRange(`range ${at}`);
  expect(readRange('first')).not.toBe(first);
  const range = readRange('^1.0.0');
  for (let patch = 0; patch < 500; patch++) isInRange(range, `1.0.${patch}`);
  expect(range.answers.size).toBe(500);
  isInRange(range, '1.1.0');
  expect([...range.answers]).toEqual([['1.1.0', true]]);
});
