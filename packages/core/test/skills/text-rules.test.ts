import { expect, it } from 'vitest';
import { findTextFault, longestText } from '../../src/skills/pattern.ts';

it.each([
  ['a\u0000', 1, 'U+0000'],
  ['line\r\n', 4, 'U+000D'],
  ['\u007f', 0, 'U+007F'],
  ['\u0085', 0, 'U+0085'],
  ['so\u00adft', 2, 'U+00AD'],
  ['a\u200bb', 1, 'U+200B'],
  ['a\u200db', 1, 'U+200D'],
  ['\ufeffa', 0, 'U+FEFF'],
  ['a\u202eb', 1, 'U+202E'],
  ['a\u2066b', 1, 'U+2066'],
  ['a\u061cb', 1, 'U+061C'],
  ['a\u2028b', 1, 'U+2028'],
  ['a\u034fb', 1, 'U+034F'],
  ['😀\ud800', 2, 'U+D800'],
  ['\udc00', 0, 'U+DC00'],
  ['😀\u{e0041}', 2, 'U+E0041'],
  ['a\u{e0101}', 1, 'U+E0101'],
])('refuses %j at %i', (text, index, character) => {
  expect(findTextFault(text)).toEqual({ index, character, message: expect.stringContaining(character) });
});

it.each([
  '',
  'plain\n\ttext',
  'é ü 漢字 עברית العربية',
  '❤️ 😀',
  'e\u0301',
  '\u00a0',
  'x'.repeat(longestText),
])('allows %j', (text) => {
  expect(findTextFault(text)).toBeNull();
});

it('refuses a text that is too long', () => {
  expect(findTextFault('x'.repeat(longestText + 1))).toEqual({
    index: longestText,
    character: null,
    message: 'the text has 4001 characters, at most 4000 are allowed',
  });
});
