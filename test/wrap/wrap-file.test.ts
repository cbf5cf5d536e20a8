import { expect, it } from 'vitest';
import { findingsOf, linesOf } from './support.ts';

const valid = `kind: command
name: upper
version: 1.0.0
description: Writes a text in capitals.
input: {type: object, required: [text], properties: {text: {type: string}}}
command:
  argv: [tr, a-z, A-Z]
  stdin: "{{ input.text }}"
`;

it('accepts a file with few fields', () => {
  expect(findingsOf(valid)).toEqual([]);
});

it.each([
  [
    'an unknown key',
    valid.replace('argv', 'args'),
    [
      '7 key_missing: "argv" is required',
      '7 key_unknown: unknown key "args"; allowed are argv, stdin, stdout, env, exit_codes, progress, grace',
    ],
  ],
  [
    'an unknown key of the file',
    `${valid}max_concurency: 2\n`,
    [expect.stringMatching(/^9 key_unknown: unknown key "max_concurency"; allowed are kind, name, /)],
  ],
  [
    'an unknown kind',
    valid.replace('kind: command', 'kind: comand'),
    [expect.stringMatching(/^1 value_invalid: expected one of command/)],
  ],
  [
    'a version that YAML reads as a number',
    valid.replace('1.0.0', '1.0'),
    ['3 type_invalid: expected a string, found the number 1'],
  ],
  [
    'an expression with an unknown root',
    valid.replace('input.text', 'job.text'),
    ['8 root_unknown: "job" is no root; there are input, files, answer, submitted, call'],
  ],
  [
    'a schema that is none',
    valid.replace('type: string', 'type: text'),
    [expect.stringMatching(/^5 value_invalid: the input schema cannot be used/)],
  ],
  [
    'a price of a free call',
    `${valid}cost: {type: free, rate_usd: 1}\n`,
    ['9 value_invalid: is 0 for the type free, and more than 0 for the others'],
  ],
  [
    'a variable where none is replaced',
    valid.replace('a-z', `"\${HOME}"`),
    [
      `7 variable_misplaced: \${HOME} is not replaced here; allowed are token, keys that end in url, headers and env`,
    ],
  ],
  [
    'a missing variable',
    `${valid}  env: {KEY: "\${NOT_SET}"}\n`,
    ['9 variable_missing: the variable NOT_SET is not set in the environment'],
  ],
  [
    'a program that an expression names',
    valid.replace('[tr,', '["{{ input.text }}",'),
    ['7 value_invalid: the program is written out; only its arguments are templates'],
  ],
  [
    'a pattern that is none',
    `${valid}  progress: {pattern: "("}\n`,
    ['9 value_invalid: is no regular expression'],
  ],
  [
    'an exit code that is none',
    `${valid}  exit_codes: {oops: failed}\n`,
    ['9 value_invalid: an exit code or default'],
  ],
  ['broken YAML', 'kind: [command', [expect.stringMatching(/^1 yaml_syntax/)]],
])('refuses %s, with its line', (_name, text, expected) => {
  expect(linesOf(findingsOf(text))).toEqual(expected);
});

it('suggests the nearest key and kind', () => {
  expect(findingsOf(valid.replace('kind: command', 'kind: comand'))[0]?.suggestion).toBe(
    'did you mean "command"?',
  );
  expect(findingsOf(`${valid}tag: [a]\n`)[0]?.suggestion).toBe('did you mean "tags"?');
});

it(`keeps the text \${NAME} where it is written $\${NAME}`, () => {
  expect(findingsOf(valid.replace('a-z', () => `"$\${HOME}"`))).toEqual([]);
});
