import { expect, it, test } from 'vitest';
import { kindOfStatus, outputInvalid, shortenText } from '../../src/call/outcome.ts';

it.each([
  [400, 'rejected'],
  [422, 'rejected'],
  [428, 'rejected'],
  [429, 'overloaded'],
  [430, 'rejected'],
  [499, 'rejected'],
  [500, 'failed'],
  [502, 'failed'],
  [503, 'overloaded'],
  [504, 'failed'],
])('HTTP %d is an outcome of kind %s', (status, kind) => {
  expect(kindOfStatus(status)).toBe(kind);
});

test('an output that does not match names each place, the whole as /', () => {
  const faults = [
    { pointer: '', message: 'must be an object' },
    { pointer: '/a', message: 'must be a number' },
  ];
  expect(outputInvalid(faults)).toEqual({
    kind: 'output_invalid',
    message: 'the answer does not match the output schema: / must be an object; /a must be a number',
    errors: faults,
  });
});

test('an output that does not match keeps ten places, with the beginnings of their texts', () => {
  const [pointer, message] = [`/${'p'.repeat(300)}`, 'm'.repeat(400)];
  const { errors = [] } = outputInvalid(Array.from({ length: 11 }, () => ({ pointer, message })));
  expect(errors).toHaveLength(10);
  expect(errors[0]).toEqual({ pointer: `${pointer.slice(0, 199)}…`, message: `${message.slice(0, 299)}…` });
});

it.each([
  ['abc', 3, 'abc'],
  ['abcd', 3, 'ab…'],
  ['a\u{1f600}bc', 3, 'a…'],
])('%j has %i characters at most: %j', (text, most, short) => {
  expect(shortenText(text, most)).toBe(short);
});
