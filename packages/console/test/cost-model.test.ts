import type { CostSeries } from '@capstan/core/contracts/money';
import { fromNanoUsd, toNanoUsd } from '@capstan/core/money/nano-usd';
import { defaultParseSearch, defaultStringifySearch } from '@tanstack/react-router';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  addressOfBuckets,
  type CallsAddress,
  describeEnd,
  describeSpan,
  formatCount,
  groupsOf,
  spanOf,
  toColumns,
  toRows,
} from '../src/pages/costs/model.ts';
import { costsSearch } from '../src/searches.ts';

const starts = ['2026-03-27T23:00:00.000Z', '2026-03-28T23:00:00.000Z', '2026-03-29T22:00:00.000Z'];
const until = '2026-03-30T22:00:00.000Z';

function aSeries(series: CostSeries['series']): CostSeries {
  const sum = (part: 'usd' | 'calls' | 'tokens') => series.reduce((all, one) => all + one[part], 0);
  return {
    from: '2026-03-28',
    to: '2026-03-30',
    timezone: 'Europe/Berlin',
    bucket: 'day',
    starts,
    until,
    usd: sum('usd'),
    calls: sum('calls'),
    tokens: sum('tokens'),
    series,
    daily_limit_usd: 0,
  };
}

/** With everything at one moment. */
function anItem(
  facts: Partial<CostSeries['series'][number]>,
  at = starts[1] ?? '',
): CostSeries['series'][number] {
  const { usd = 1, calls = 1, tokens = 0 } = facts;
  return { name: 'a', usd, calls, tokens, ...facts, points: [[at, usd, calls, tokens]] };
}

/** As the router writes it, and reads it again. */
function readAddress(address: CallsAddress): Readonly<Record<string, unknown>> {
  return defaultParseSearch(defaultStringifySearch(address));
}

describe('the address of the page', () => {
  test.each([
    [{}, { period: 'week' }, 'this week'],
    [{ period: 'yesterday' }, { period: 'yesterday' }, 'yesterday'],
    [
      { from: '2026-03-28', to: '2026-03-29' },
      { from: '2026-03-28', to: '2026-03-29' },
      '2026-03-28 to 2026-03-29',
    ],
    [{ from: '2026-03-28', to: '2026-03-28' }, { from: '2026-03-28', to: '2026-03-28' }, 'on 2026-03-28'],
    [{ from: '2026-03-28', to: '2026-03-01' }, { from: '2026-03-28' }, 'since 2026-03-28'],
    [{ from: '2026-02-30', period: 'month' }, { period: 'month' }, 'this month'],
    [{ to: '2026-03-01', period: 'eon' }, { period: 'week' }, 'this week'],
  ])('%j asks for %j', (raw, span, words) => {
    const search = costsSearch(raw);
    expect([spanOf(search), describeSpan(search)]).toEqual([span, words]);
  });

  test.each([
    [{}, { by: 'capability', and: null }],
    [{ by: 'label' }, null],
    [
      { by: 'label', label: 'team' },
      { by: 'label:team', and: null },
    ],
    [
      { by: 'key', and: 'model' },
      { by: 'key', and: 'model' },
    ],
    [
      { by: 'key', and: 'key' },
      { by: 'key', and: null },
    ],
    [
      { by: 'key', and: 'label' },
      { by: 'key', and: null },
    ],
    [
      { by: 'label', label: 'a', and: 'label', and_label: 'b' },
      { by: 'label:a', and: 'label:b' },
    ],
    [{ by: 'colour' }, { by: 'capability', and: null }],
  ])('%j groups by %j', (raw, groups) => expect(groupsOf(costsSearch(raw))).toEqual(groups));
});

describe('a row', () => {
  test('leads to its calls, by the id behind its name', () => {
    const groups = { by: 'key', and: 'label:team' } as const;
    const items = [
      anItem({ name: 'key_1', title: 'ads', and: 'a=b&c', usd: 3 }),
      anItem({ name: 'key_1', title: 'ads', and: '', usd: 2 }),
      anItem({ name: '', and: 'x', usd: 1 }),
      anItem({ name: 'others', is_rest: true, usd: 0.5 }),
    ];
    const rows = toRows(aSeries(items), groups);
    expect(rows.map(({ names, address }) => [names, address])).toEqual([
      [['ads', 'a=b&c'], { since: starts[0], until, key: 'key_1', label: 'team=a=b&c' }],
      [['ads', 'none'], null],
      [['none', 'x'], null],
      [['all others'], null],
    ]);
    expect(readAddress(rows[0]?.address ?? {})).toMatchObject({ label: 'team=a=b&c' });
  });

  test.each(['1e3', '007', 'true', '1.50', '{"a":1}', 'ü & +'])(
    'of the user %s leads to those of this text',
    (name) => {
      const [row] = toRows(aSeries([anItem({ name })]), { by: 'user', and: null });
      expect(readAddress(row?.address ?? {})).toEqual({ since: starts[0], until, user: name });
    },
  );

  test('of two labels leads nowhere: a list of calls has one label', () => {
    const groups = { by: 'label:a', and: 'label:b' } as const;
    expect(toRows(aSeries([anItem({ and: 'x' })]), groups)[0]?.address).toBeNull();
  });
});

describe('a bar', () => {
  test('leads to the calls of its day, which the clock of the zone cuts', () => {
    const costs = aSeries([]);
    expect(addressOfBuckets(costs, 1, 1)).toEqual({ since: starts[1], until: starts[2] });
    expect(addressOfBuckets(costs, 0, 2)).toEqual({ since: starts[0], until });
  });

  test('has the sums of the answer, whatever is shown as others', () => {
    const item = fc.record({
      usd: fc.integer({ min: 0, max: 1e9 }).map((nano) => fromNanoUsd(BigInt(nano))),
      calls: fc.integer({ min: 0, max: 1_000 }),
      tokens: fc.integer({ min: 0, max: 1_000 }),
      at: fc.constantFrom(...starts),
    });
    fc.assert(
      fc.property(fc.array(item, { maxLength: 12 }), (items) => {
        const costs = aSeries(
          items.map(({ at, ...sums }, index) => anItem({ name: `${index}`, ...sums }, at)),
        );
        const columns = toColumns(costs, toRows(costs, { by: 'model', and: null }));
        expect(columns.map(({ key }) => key)).toEqual(starts);
        for (const { key, usd, parts, calls, tokens } of columns) {
          const there = items.filter(({ at }) => at === key);
          const nano = (all: bigint, usd: number): bigint => all + toNanoUsd(usd);
          expect(parts.reduce((all, { value }) => nano(all, value), 0n)).toBe(
            there.reduce((all, { usd }) => nano(all, usd), 0n),
          );
          expect(usd).toBe(fromNanoUsd(there.reduce((all, one) => nano(all, one.usd), 0n)));
          expect([calls, tokens]).toEqual([
            there.reduce((all, one) => all + one.calls, 0),
            there.reduce((all, one) => all + one.tokens, 0),
          ]);
        }
      }),
    );
  });

  test('has its date in the zone of the project', () => {
    const costs = { ...aSeries([anItem({})]), timezone: 'Pacific/Auckland' };
    expect(toColumns(costs, [])[0]?.title).toContain('28');
    expect(toColumns({ ...costs, timezone: 'America/New_York' }, [])[0]?.title).toContain('27');
  });
});

test.each([
  [0, '0'],
  [1_203, '1,203'],
  [123_456, '123 k'],
  [1_500_000, '1.5 M'],
  [2_000_000_000, '2 G'],
])('%d is %s', (count, text) => expect(formatCount(count)).toBe(text));

test.each([
  ['month', 'at this rate $12.00 by the end of the month'],
  [null, 'at this rate $12.00 by the end of the span'],
] as const)('the end of %s is in words', (period, text) => {
  expect(describeEnd({ period, forecast_usd: 12 })).toBe(text);
  expect(describeEnd({ period, forecast_usd: null })).toBeNull();
});
