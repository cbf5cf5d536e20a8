import { compileSchema } from '@capstan/capability/schema';
import { fullFormats } from 'ajv-formats/dist/formats.js';
import { describe, expect, test } from 'vitest';
import { type MakeText, measureExcessMs } from '../../../../test/support/linear-time.ts';
import { createSchemaCompiler } from '../../src/schemas/schema-compiler.ts';

const { compile } = createSchemaCompiler();

/** Where time is not linear, a quarter of what a string of a request may be takes seconds. */
const limit = { length: 65_536, limitMs: 500 };
const characters = [...'a0 /:.-_"\\{[(<=é@%&`,;|*+~#xTZ'];
const beginnings = [
  'http://',
  'http://a',
  '2020-01-01T',
  'P',
  'a@',
  'data:,',
  'urn:',
  '#/',
  'http://[',
  'http://é',
];

const texts: readonly MakeText[] = [
  ...[
    ...characters,
    ...characters.flatMap((one) => [...'a.:/@'].map((other) => one + other)),
    ...beginnings,
  ].map((part) => (length: number) => part.repeat(length / part.length)),
  ...beginnings.flatMap((beginning) =>
    [...'a0.:/@-é%['].map((one) => (length: number) => `${beginning}${one.repeat(length)} `),
  ),
];

test.each(Object.keys(fullFormats))('%s takes no longer for texts that are made for it', (format) => {
  const check = compile({ type: 'string', format });
  const slow = texts.filter((make) => measureExcessMs(check, make, limit) > 0);
  expect(slow.map((make) => make(32))).toEqual([]);
});

test.each([
  ['http://127.0.0.1:8100/x?y#z', true],
  ['https://exämple.de/ü', true],
  ['HTTP://A', true],
  ['ftp://a.b', true],
  ['https://', false],
  ['http://a b', false],
  ['mailto:a@b.c', false],
  ['/relative', false],
  ['http://[::', false],
])('format url: %s is one: %s', (text, isOne) => {
  expect(compile({ format: 'url' })(text).length === 0).toBe(isOne);
});

describe('a format is one rule for all', () => {
  const schema = { type: 'object', properties: { to: { type: 'string', format: 'email' } } } as const;
  const value = { to: 'jürgen@exämple.de' };

  test('asserted of inputs, by the router and by the SDK', async () => {
    expect(compile(schema)(value)).toEqual([
      { pointer: '/to', message: expect.stringContaining('must match format "email"') },
    ]);
    expect(await compileSchema(schema, 'input').check(value)).toEqual({
      ok: false,
      error: 'to: must match format "email"',
    });
  });

  test('only noted of outputs, by both', async () => {
    expect(compile(schema, 'noted')(value)).toEqual([]);
    expect(await compileSchema(schema, 'output').check(value)).toEqual({ ok: true, value });
  });
});
