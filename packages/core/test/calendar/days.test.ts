import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import {
  addDays,
  bucketFor,
  countDays,
  cutSpan,
  dayAt,
  dayStart,
  lastDayOf,
  spanOf,
} from '../../src/calendar/days.ts';
import { CostBucket, CostPeriod } from '../../src/contracts/money.ts';

const hourMs = 3_600_000;

function hoursOf(day: string, timezone: string): number {
  return (dayStart(addDays(day, 1), timezone) - dayStart(day, timezone)) / hourMs;
}

describe('a day of a zone', () => {
  it.each([
    ['2026-11-26T23:30Z', 'Europe/Berlin', '2026-11-27'],
    ['2026-11-26T22:59:59.999Z', 'Europe/Berlin', '2026-11-26'],
    ['2026-07-26T22:00Z', 'Europe/Berlin', '2026-07-27'], // summer: two hours ahead
    ['2026-03-28T22:59Z', 'Europe/Berlin', '2026-03-28'], // the night of the change to summer
    ['2026-03-28T23:30Z', 'Europe/Berlin', '2026-03-29'],
    ['2026-10-24T22:00Z', 'Europe/Berlin', '2026-10-25'], // the night of the change to winter
    ['2026-10-25T22:30Z', 'Europe/Berlin', '2026-10-25'],
    ['2027-09-05T04:00Z', 'America/Santiago', '2027-09-05'], // midnight is skipped
    ['2026-11-27T03:00Z', 'America/New_York', '2026-11-26'],
    ['2026-12-31T10:00Z', 'Pacific/Kiritimati', '2027-01-01'],
    ['2026-11-26T23:30Z', 'UTC', '2026-11-26'],
  ])('%s is in %s on %s', (at, timezone, day) => {
    expect(dayAt(Date.parse(at), timezone)).toBe(day);
  });

  it.each([
    ['2026-01-01', 'UTC', '2026-01-01T00:00Z', 24],
    ['2026-03-29', 'Europe/Berlin', '2026-03-28T23:00Z', 23],
    ['2026-10-25', 'Europe/Berlin', '2026-10-24T22:00Z', 25],
    ['2026-03-08', 'America/New_York', '2026-03-08T05:00Z', 23],
    ['2026-11-01', 'America/New_York', '2026-11-01T04:00Z', 25],
    ['2027-09-05', 'America/Santiago', '2027-09-05T04:00Z', 23], // midnight is skipped
    ['2027-04-03', 'America/Santiago', '2027-04-03T03:00Z', 25], // the hour before midnight occurs twice
    ['2026-11-01', 'America/Havana', '2026-11-01T04:00Z', 25], // midnight occurs twice
    ['2026-04-05', 'Australia/Lord_Howe', '2026-04-04T13:00Z', 24.5],
    ['2026-10-04', 'Australia/Lord_Howe', '2026-10-03T13:30Z', 23.5],
    ['2026-06-01', 'Asia/Kathmandu', '2026-05-31T18:15Z', 24],
    ['2026-06-01', 'Pacific/Kiritimati', '2026-05-31T10:00Z', 24],
    ['2011-12-30', 'Pacific/Apia', '2011-12-30T10:00Z', 0], // the zone has no such day
  ])('%s in %s begins at %s and has %d hours', (day, timezone, start, hours) => {
    expect([dayStart(day, timezone), hoursOf(day, timezone)]).toEqual([Date.parse(start), hours]);
  });
});

describe('a period', () => {
  const first = '2025-11-30';
  it.each([
    ['2026-03-01', 'day', '2026-03-01', '2026-03-01'],
    ['2026-03-01', 'yesterday', '2026-02-28', '2026-02-28'],
    ['2028-03-01', 'yesterday', '2028-02-29', '2028-02-29'],
    ['2026-03-01', 'week', '2026-02-23', '2026-03-01'],
    ['2026-03-02', 'week', '2026-03-02', '2026-03-02'],
    ['2026-03-01', 'last_7_days', '2026-02-23', '2026-03-01'],
    ['2026-03-31', 'month', '2026-03-01', '2026-03-31'],
    ['2026-03-31', 'last_month', '2026-02-01', '2026-02-28'],
    ['2026-01-31', 'last_month', '2025-12-01', '2025-12-31'],
    ['2026-03-01', 'last_30_days', '2026-01-31', '2026-03-01'],
    ['2026-03-01', 'all', first, '2026-03-01'],
    ['2025-11-29', 'all', '2025-11-29', '2025-11-29'],
  ] as const)('on %s, %s is %s to %s', (today, period, from, to) => {
    expect(spanOf(period, { today, first })).toEqual({ from, to });
  });

  it.each([
    ['2026-03-01', 'day', '2026-03-01'],
    ['2026-03-01', 'week', '2026-03-01'],
    ['2026-03-02', 'week', '2026-03-08'],
    ['2028-02-01', 'month', '2028-02-29'],
    ['2026-12-31', 'month', '2026-12-31'],
    ['2026-12-31', 'yesterday', null],
    ['2026-12-31', 'last_7_days', null],
  ] as const)('on %s, %s ends with %s', (today, period, last) => {
    expect(lastDayOf(period, today)).toBe(last);
  });

  it('ends today or before, and a running one ends today or later', () => {
    const day = fc.integer({ min: 0, max: 20_000 }).map((days) => addDays('2000-01-01', days));
    fc.assert(
      fc.property(day, day, fc.constantFrom(...CostPeriod.options), (today, begun, period) => {
        const span = spanOf(period, { today, first: begun });
        expect(countDays(span)).toBeGreaterThan(0);
        expect(span.to <= today).toBe(true);
        expect((lastDayOf(period, today) ?? today) >= today).toBe(true);
      }),
      { numRuns: runs(200) },
    );
  });
});

describe('buckets', () => {
  const zones = [
    'UTC',
    'Europe/Berlin',
    'America/New_York',
    'America/Santiago',
    'America/Havana',
    'Africa/Cairo',
    'Australia/Lord_Howe',
    'Asia/Kathmandu',
    'Pacific/Apia',
  ];

  it('cover a span without gaps, and change the day with the zone', () => {
    const day = fc.integer({ min: 0, max: 9_000 }).map((days) => addDays('2008-01-01', days));
    const some = fc.record({
      from: day,
      length: fc.integer({ min: 0, max: 120 }),
      timezone: fc.constantFrom(...zones),
      bucket: fc.constantFrom(...CostBucket.options),
    });
    fc.assert(
      fc.property(some, ({ from, length, timezone, bucket }) => {
        const to = addDays(from, bucket === 'hour' ? length % 4 : length);
        const { starts, until } = cutSpan({ from, to }, { bucket, timezone });
        if (until === dayStart(from, timezone)) return expect(starts).toEqual([]); // a day that the zone skips
        expect([starts[0], until]).toEqual([dayStart(from, timezone), dayStart(addDays(to, 1), timezone)]);
        const widths = starts.map((at, index) => (starts[index + 1] ?? until) - at);
        const most = { hour: 1, day: 25, month: 31 * 24 + 1 }[bucket];
        for (const width of widths) {
          expect(width).toBeGreaterThan(0);
          expect(width).toBeLessThanOrEqual(most * hourMs);
        }
      }),
      { numRuns: runs(60) },
    );
  });

  it.each([
    ['the hours of a day with 25', 'hour', ['2026-10-25', '2026-10-25'], 25],
    ['the hours of a day with 23 and the next', 'hour', ['2026-03-29', '2026-03-30'], 47],
    ['the days of a month with a change of clocks', 'day', ['2026-10-01', '2026-10-31'], 31],
    ['months, the first and last of which are cut', 'month', ['2026-01-31', '2026-03-01'], 3],
  ] as const)('are %s', (_, bucket, [from, to], count) => {
    expect(cutSpan({ from, to }, { bucket, timezone: 'Europe/Berlin' }).starts).toHaveLength(count);
  });

  it.each([
    ['2026-01-01', '2026-01-01', 'hour'],
    ['2026-01-01', '2026-01-02', 'day'],
    ['2026-01-01', '2026-04-03', 'day'],
    ['2026-01-01', '2026-04-04', 'month'],
  ])('of %s to %s are by default a %s', (from, to, bucket) => {
    expect(bucketFor({ from, to })).toBe(bucket);
  });
});
