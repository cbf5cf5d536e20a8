import fc from 'fast-check';
import { expect, it } from 'vitest';
import { renderFindings } from '../../../src/cli/render/findings.ts';
import { createStyle } from '../../../src/cli/render/print.ts';
import { maskText } from '../src/file-variables.ts';
import { readWrapFile } from '../src/wrap-file.ts';
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
    ['8 root_unknown: "job" is no root; there are input, files, answer, submitted, call, folder'],
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
  [
    'a variable without a name',
    `${valid}  env: {KEY: "\${A B}"}\n`,
    [`9 variable_invalid: after \${ belongs a name of letters, digits and _, and }`],
  ],
  [
    'an affinity that is none',
    `${valid.replace('upper', 'upper-case')}affinity: "{{ job.text }}"\n`,
    [expect.stringMatching(/^9 value_invalid: at character 4: "job" is no root/)],
  ],
  [
    'durations that no timer can keep',
    `${valid}  grace: 30d\ntimeout: 0s\n`,
    ['9 value_invalid: is 30d; 0s to 24h is allowed', '10 value_invalid: is 0s; 1ms to 24h is allowed'],
  ],
  [
    'a key that reaches a prototype',
    valid.replace('properties: {text', 'properties: {__proto__: {}, text'),
    ['5 name_forbidden: the key __proto__ is not allowed'],
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

const served = `kind: http
name: draw
version: 1.0.0
description: Draws a picture.
input: {type: object, required: [text], properties: {text: {type: string}}}
http:
  url: https://example.com/draw
  headers: {accept: application/json}
  body: {prompt: "{{ input.text }}"}
`;

/** Where a secret may be written, beside the places that refuse it. */
const places: readonly ((secret: string) => string)[] = [
  (secret) => served.replace('accept: application/json', `authorization: "Bearer ${secret}"`),
  (secret) => served.replace('accept: application/json', `x-custom: ${secret}`),
  (secret) => served.replace('accept: application/json', `authorization: "Bearer {{ '${secret}' }}"`),
  (secret) => served.replace('/draw', `/draw?size=2&key=${secret}`),
  (secret) => served.replace('https://', `https://user:${secret}@`),
  (secret) => served.replace('body: {', `body: {key: ${secret}, `),
  (secret) => served.replace('version: 1.0.0', `version: 1.0.0 # the key is ${secret}`),
  (secret) => served.replace('Draws a picture.', `Draws with ${secret}.`),
  (secret) => `${served}  token: ${secret}\n`,
  (secret) => valid.replace('a-z', `--token=${secret}`),
  (secret) => valid.replace('a-z', `-p${secret}`),
  (secret) => valid.replace('a-z', `-H, 'Authorization: Bearer ${secret}'`),
  (secret) => `${valid}  env: {API_KEY: ${secret}}\n`,
  (secret) => valid.replace('stdin: ', `env: {PASSWORD: '${secret}'}\n  stdin: `),
];

/** Each puts a fault on the line of the secret, or beside it. */
const faults: readonly ((text: string, secret: string) => string)[] = [
  (text) => text,
  (text) => text.replace('input.text', 'job.text'),
  (text) => text.replace('kind: ', 'knd: '),
  (text, secret) => text.replace(secret, `${secret}{{ oops`),
  (text, secret) => text.replace(secret, `${secret}\${NOT_SET}`),
  (text, secret) => text.replace(secret, `[${secret}`),
  (text, secret) => text.replace(secret, `${secret}" ]`),
  (text) => text.replace(/\n/g, '\n\t'),
];

function outputOf(text: string): string {
  const reading = readWrapFile(text, { folder: '/nowhere', stateDir: '/nowhere', environment: {} });
  if ('capability' in reading) return '';
  const source = { name: 'a.yaml', text: reading.shown, type: 'application/yaml' } as const;
  const layout = { width: Number.POSITIVE_INFINITY, style: createStyle(false) };
  return [JSON.stringify(reading.findings), ...renderFindings(reading.findings, source, layout)].join('\n');
}

it('repeats no secret that the file holds, at any position and with any fault', () => {
  const secret = fc.oneof(
    fc.stringMatching(/^sk-[A-Za-z0-9]{8,40}$/),
    fc.stringMatching(/^[0-9a-f]{16,64}$/),
    fc.stringMatching(/^[1-9][0-9]{7,15}$/),
    fc.stringMatching(/^[A-Za-z0-9+/]{12,40}={0,2}$/),
    fc.stringMatching(/^[a-z]{12,16}$/),
  );
  let faulty = 0;
  fc.assert(
    fc.property(secret, fc.constantFrom(...places), fc.constantFrom(...faults), (text, place, fault) => {
      const output = outputOf(fault(place(text), text));
      if (output !== '') faulty += 1;
      expect(output).not.toContain(text);
    }),
    { numRuns: 400 },
  );
  expect(faulty).toBeGreaterThan(100);
});

it('shows the line of a fault without its literals, and the column where it was', () => {
  const { shown } = maskText(served.replace('/draw', '/draw?key=abc&text={{ input.text | oops }}'));
  expect(shown.split('\n').slice(0, 8)).toEqual([
    'kind: http',
    'name: draw',
    'version: 1.0.0',
    'description: ***** * ********',
    'input: {type: object, required: [text], properties: {text: {type: string}}}',
    'http:',
    '  url: https://example.com*******************{{ input.text | oops }}'.replace(
      '*******************',
      '*'.repeat(19),
    ),
    '  headers: {accept: ****************}',
  ]);
});
