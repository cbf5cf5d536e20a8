import { expect, test } from 'vitest';
import { isJsonText, toJsonText, withMember, writeJson } from '../../src/json/text.ts';

test('JSON text is written unchanged, anything else as JSON.stringify does', () => {
  expect(writeJson(toJsonText('{"a": [1]}'))).toBe('{"a": [1]}');
  expect(writeJson({ a: [1] })).toBe('{"a":[1]}');
  expect(writeJson(null)).toBe('null');
});

test('no value that came as JSON is mistaken for JSON text', () => {
  expect(isJsonText(JSON.parse('{"Symbol(JSON text)":"x","text":"x"}'))).toBe(false);
});

test('a member that is written already is the last of its object', () => {
  expect(JSON.parse(withMember({ a: 1 }, 'in "puts"', '{"b":[2]}'))).toEqual({
    a: 1,
    'in "puts"': { b: [2] },
  });
  expect(JSON.parse(withMember({}, 'b', 'null'))).toEqual({ b: null });
});
