import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ExactNumber, isKept, parseExactJson, writeExactJson } from '../../src/contracts/exact-json.ts';
import { findLostNumbers, readLostScalar } from '../../src/json/numbers.ts';

const kept = [
  ...['0', '-0', '0.000', '0e999', '1', '-1.50', '1e3', '1E+2', '0.1', '3.141592653589793'],
  ...['9007199254740992', '-9007199254740992', '12345678901234567000', '1e22', '1e23', `1${'0'.repeat(150)}`],
  ...['0.30000001192092896', '0.10000000000000001', '5e-324', '1.7976931348623157e308', '2e-05'],
  '0.1000000000000000055511151231257827', // 0.1, as C prints it
];
const lost = [
  ...['7615917337495251231', '9007199254740993', '-9007199254740993', '18446744073709551615'],
  ...['9007199254740993.0', '9007199254740993e0', '900719925474099.3e1', '1700000000.123456789'],
  ...[
    '3.141592653589793238',
    '0.1234567890123456789012',
    '1e999',
    '-1e400',
    '1e-400',
    `1${'0'.repeat(149)}1`,
    '-72532947598636326910',
    '0.100000000000000005550',
  ],
];

describe('a number that is written', () => {
  test.each(kept)('%s is kept', (written) => {
    expect(isKept(written)).toBe(true);
    expect(findLostNumbers(`{"a":${written}}`)).toEqual([]);
  });

  test.each(lost)('%s is not kept, at any position', (written) => {
    expect(isKept(written)).toBe(false);
    for (const [text, pointer] of [
      [written, ''],
      [`[0, ${written}]`, '/1'],
      [`{"a":${written}}`, '/a'],
    ] as const) {
      expect(findLostNumbers(text)).toMatchObject([{ pointer }]);
    }
  });

  test('is kept in a body whenever JavaScript has written it', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        expect(findLostNumbers(text)).toEqual([]);
        expect(parseExactJson(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  test('of whole digits is kept when the double is that number, or JavaScript writes it so', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }), (whole) => {
        const isSame = BigInt(Number(whole)) === whole || String(Number(whole)) === String(whole);
        expect([whole, isKept(String(whole))]).toEqual([whole, isSame]);
      }),
    );
  });
});

test('a number in a string, also behind quotes and slashes, is text', () => {
  const text = String.raw`{"a":"9007199254740993","b\"":"\\","c":["x\"9007199254740993\\\"",": 9007199254740993"]}`;
  expect(findLostNumbers(text)).toEqual([]);
  expect(writeExactJson(parseExactJson(text))).toBe(text);
});

test('each of the first twenty is named with its place and what to write', () => {
  const text =
    '{\n  "job": {"a/b": [{}, {"id": 7615917337495251231}]},\n  "n": -1e999, "s": [[], 9007199254740993]\n}';
  expect(findLostNumbers(text)).toEqual([
    {
      pointer: '/job/a~1b/1/id',
      line: 2,
      column: 30,
      message: 'the number 7615917337495251231 cannot be kept: it would become 7615917337495251000',
      suggestion: 'write it as text: "7615917337495251231"',
    },
    {
      pointer: '/n',
      line: 3,
      column: 8,
      message: 'the number -1e999 is too large to be kept: the largest is 1.7976931348623157e+308',
      suggestion: 'write it as text: "-1e999"',
    },
    expect.objectContaining({ pointer: '/s/1', line: 3, column: 26 }),
  ]);
  expect(findLostNumbers(`[${Array(50).fill('9007199254740993').join()}]`)).toHaveLength(20);
});

test.each([
  ['0xFFFFFFFFFFFFFFFF', 2 ** 64, true],
  ['0x1F', 31, false],
  ['0o777', 511, false],
  ['+9007199254740993', 9007199254740992, true],
  ['.5', 0.5, false],
  ['.inf', Number.POSITIVE_INFINITY, false],
  ['1e999', Number.POSITIVE_INFINITY, true],
])('YAML writes numbers in more ways: %s', (written, value, isLost) => {
  expect(readLostScalar(value, written) !== null).toBe(isLost);
});

describe('a JSON text with exact numbers', () => {
  test('is written again as it was read', () => {
    const written = fc.oneof(
      fc.bigInt({ min: 2n ** 54n, max: 2n ** 90n }).map((whole) => `${whole}1`),
      fc.nat().map((digits) => `-0.1234567890123456789${digits}7`),
      fc.integer().map(String),
    );
    const leaf = fc.oneof(
      written,
      fc.string().map((text) => JSON.stringify(text)),
      fc.constant('null'),
    );
    const { value } = fc.letrec<{ value: string }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        leaf,
        fc.array(tie('value'), { maxLength: 4 }).map((items) => `[${items.join()}]`),
        fc
          .uniqueArray(tie('value'), { maxLength: 4 })
          .map((items) => `{${items.map((item, at) => `"k${at}":${item}`).join()}}`),
      ),
    }));
    fc.assert(fc.property(value, (text) => void expect(writeExactJson(parseExactJson(text))).toBe(text)));
  });

  test('gives such a number its own kind, and numbers that are too large none', () => {
    expect(parseExactJson('[9007199254740993, 1e999, 7]')).toEqual([
      new ExactNumber('9007199254740993'),
      Number.POSITIVE_INFINITY,
      7,
    ]);
  });

  test('two of them are equal by their value', () => {
    const equals = (a: string, b: string) => new ExactNumber(a).equals(new ExactNumber(b));
    expect(equals('9007199254740993', '9007199254740993.0')).toBe(true);
    expect(equals('9007199254740993', '900719925474099.3e1')).toBe(true);
    expect(equals('9007199254740993', '-9007199254740993')).toBe(false);
    expect(equals('9007199254740993', '90071992547409930')).toBe(false);
  });
});
