import { expect, test } from 'vitest';
import { describeRates, readExpiry, readRate, readUses } from '../src/pages/settings/key-uses.ts';

test.each([
  [60, 50_000, '60 requests, 50,000 tokens a minute'],
  [null, 10, '10 tokens a minute'],
  [1, null, '1 request a minute'],
  [null, null, null],
])('%j requests and %j tokens are "%s"', (requests_per_minute, tokens_per_minute, text) => {
  expect(describeRates({ requests_per_minute, tokens_per_minute })).toBe(text);
});

test('a key that is not among the groups made no call, unless others are one group', () => {
  const sums = { usd: 2, calls: 3, tokens: 0 };
  const points: [string, number, number, number][] = [
    ['2026-11-01T00:00:00.000Z', 1, 2, 0],
    ['2026-11-20T00:00:00.000Z', 1, 1, 0],
  ];
  const named = { name: 'key_1', ...sums, points };
  const whole = readUses({ series: [named] });
  expect([whole('key_1'), whole('key_2')]).toEqual([
    { usd: 2, calls: 3, last: '2026-11-20T00:00:00.000Z' },
    { usd: 0, calls: 0, last: null },
  ]);
  expect(
    readUses({ series: [named, { name: 'others', is_rest: true, ...sums, points }] })('key_2'),
  ).toBeNull();
});

test('a form sends no expiry and no rate that is empty', () => {
  expect([readExpiry(''), readRate('')]).toEqual([undefined, undefined]);
  expect(readExpiry('2027-01-31')).toBe(new Date(2027, 0, 31).toISOString());
  expect(readRate('60')).toBe(60);
});
