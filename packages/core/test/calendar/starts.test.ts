import fc from 'fast-check';
import { expect, it } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { readCron, toCalendar } from '../../src/calendar/cron.ts';
import {
  nextStarts,
  plannedDays,
  planStarts,
  previousStart,
  type StartPlan,
} from '../../src/calendar/starts.ts';

const minuteMs = 60_000;
const dayMs = 86_400_000;

it.each([
  ['0 9 * * 1-5', 'Europe/Berlin', '2026-01-02T10:00Z', ['2026-01-05T08:00Z', '2026-01-06T08:00Z']],
  ['*/30 * * * *', 'UTC', '2026-01-01T23:10Z', ['2026-01-01T23:30Z', '2026-01-02T00:00Z']],
  ['0 12 13 * fri', 'UTC', '2026-01-08T12:00Z', ['2026-01-09T12:00Z', '2026-01-13T12:00Z']],
  ['0 0 * * 7', 'UTC', '2026-01-01T00:00Z', ['2026-01-04T00:00Z', '2026-01-11T00:00Z']],
  ['0 0 29 2 *', 'UTC', '2026-01-01T00:00Z', ['2028-02-29T00:00Z', '2032-02-29T00:00Z']],
  ['@monthly', 'America/New_York', '2026-03-01T12:00Z', ['2026-04-01T04:00Z', '2026-05-01T04:00Z']],
])('%s in %s starts next after %s', (cron, timezone, after, starts) => {
  const found = nextStarts(cron, { timezone, after: Date.parse(after), count: 2 });
  expect(found).toEqual(starts.map((start) => Date.parse(start)));
});

it('finds no next start in an unknown zone', () => {
  expect(() => nextStarts('@daily', { timezone: 'Mars/One', after: 0, count: 1 })).toThrow(RangeError);
});

const whole = (year: string): readonly [string, string] => [`${year}-01-01T00:00Z`, `${year}-12-31T23:59Z`];

function startsBetween(cron: string, timezone: string, [from, to]: readonly [string, string]): string[] {
  const starts = nextStarts(cron, { timezone, after: Date.parse(from) - 1, count: 2_000 });
  return starts
    .filter((at) => at <= Date.parse(to))
    .map((at) => `${new Date(at).toISOString().slice(5, 16)}Z`);
}

/** Dates of the changes: Berlin 28 March 01:00Z and 31 October 01:00Z, New York 7 November 06:00Z, all of 2027. */
it.each([
  [
    '30 2 26-30 3 *',
    'Europe/Berlin',
    ['03-26T01:30Z', '03-27T01:30Z', '03-28T01:00Z', '03-29T00:30Z', '03-30T00:30Z'],
  ],
  ['0 0 5-7 9 *', 'America/Santiago', ['09-05T04:00Z', '09-06T03:00Z', '09-07T03:00Z']],
  ['0 9 * 9 0', 'America/Santiago', ['09-05T12:00Z', '09-12T12:00Z', '09-19T12:00Z', '09-26T12:00Z']],
  [
    '0 9 4,5 9 6',
    'America/Santiago',
    ['09-04T13:00Z', '09-05T12:00Z', '09-11T12:00Z', '09-18T12:00Z', '09-25T12:00Z'],
  ],
  ['0 0 29,30 4 *', 'Africa/Cairo', ['04-28T22:00Z', '04-29T22:00Z']],
  ['0 0 30 4 *', 'Africa/Cairo', ['04-29T22:00Z']],
  ['30 1 6-8 11 *', 'America/New_York', ['11-06T05:30Z', '11-07T05:30Z', '11-08T06:30Z']],
  [
    '*/10 2 31 10 *',
    'Europe/Berlin',
    ['00', '10', '20', '30', '40', '50'].map((minute) => `10-31T00:${minute}Z`),
  ],
  ['*/10 2 28 3 *', 'Europe/Berlin', ['03-28T01:00Z']],
  ['0 2,3 28 3 *', 'Europe/Berlin', ['03-28T01:00Z']],
  [
    '*/30 1-3 31 10 *',
    'Europe/Berlin',
    ['10-30T23:00Z', '10-30T23:30Z', '10-31T00:00Z', '10-31T00:30Z', '10-31T02:00Z', '10-31T02:30Z'],
  ],
  ['15 0 13-15 3 *', 'America/Havana', ['03-13T05:15Z', '03-14T05:00Z', '03-15T04:15Z']],
  ['10 2 2-4 10 *', 'Australia/Lord_Howe', ['10-01T15:40Z', '10-02T15:30Z', '10-03T15:10Z']],
])('a fixed time has one start on each date of 2027: %s in %s', (cron, timezone, starts) => {
  expect(startsBetween(cron, timezone, whole('2027'))).toEqual(starts);
});

it('starts at the next minute that exists also where a zone leaves out a whole date', () => {
  const around = ['2011-12-29T00:00Z', '2012-01-01T00:00Z'] as const;
  expect(startsBetween('0 9 * * *', 'Pacific/Apia', around)).toEqual([
    '12-29T19:00Z',
    '12-30T10:00Z',
    '12-30T19:00Z',
    '12-31T19:00Z',
  ]);
});

it.each([
  ['*/10 * * * *', 'Europe/Berlin', ['2027-10-31T00:00Z', '2027-10-31T02:50Z'], 10],
  ['*/10 * * * *', 'Europe/Berlin', ['2027-03-28T00:00Z', '2027-03-28T02:50Z'], 10],
  ['@hourly', 'America/New_York', ['2027-11-07T03:00Z', '2027-11-07T09:00Z'], 60],
  ['@hourly', 'America/Santiago', ['2027-09-05T01:00Z', '2027-09-05T08:00Z'], 60],
  ['5,35 0-23 * * *', 'Africa/Cairo', ['2027-04-29T20:05Z', '2027-04-29T23:59Z'], 30],
] as const)('a line of every hour runs in real time: %s in %s, %j', (cron, timezone, range, everyMin) => {
  const [from, to] = range.map((text) => Date.parse(text)) as [number, number];
  const count = Math.floor((to - from) / minuteMs / everyMin) + 1;
  const expected = Array.from({ length: count }, (_, n) => from + n * everyMin * minuteMs);
  expect(nextStarts(cron, { timezone, after: from - 1, count })).toEqual(expected);
});

const zones = [
  'UTC',
  'Europe/Berlin',
  'Europe/Dublin',
  'America/New_York',
  'America/St_Johns',
  'America/Santiago',
  'America/Asuncion',
  'America/Havana',
  'Africa/Cairo',
  'Africa/Casablanca',
  'Asia/Beirut',
  'Asia/Kathmandu',
  'Atlantic/Azores',
  'Australia/Lord_Howe',
  'Pacific/Apia',
  'Pacific/Chatham',
];

function readWall(timeZone: string): (ms: number) => number {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' });
  return (ms) => Date.parse(`${format.format(ms).replace(' ', 'T')}Z`);
}

/** Noons UTC before the days on which a zone changes its clock, and some day without a change. */
function daysOfChange(zone: string, year: number): readonly number[] {
  const wall = readWall(zone);
  const noons = Array.from({ length: 365 }, (_, day) => Date.UTC(year, 0, 1, 12) + day * dayMs);
  const offsets = noons.map((noon) => wall(noon) - noon);
  const changed = noons.filter((_, day) => day > 0 && offsets[day] !== offsets[day - 1]);
  return [Date.UTC(year, 6, 5, 12), ...changed.map((noon) => noon - dayMs)];
}

const aNight = fc
  .tuple(fc.constantFrom(...zones), fc.integer({ min: 2005, max: 2036 }), fc.nat())
  .map(([timezone, year, pick]) => {
    const days = daysOfChange(timezone, year);
    return { timezone, noon: days[pick % days.length] ?? 0 };
  });

const aField = (most: number) =>
  fc.oneof(
    fc.integer({ min: 0, max: most }).map(String),
    fc.integer({ min: 1, max: most }).map((step) => `*/${step}`),
    fc.uniqueArray(fc.integer({ min: 0, max: most }), { minLength: 1, maxLength: 4 }).map(String),
  );
const aLine = fc
  .tuple(
    aField(59),
    fc.oneof(aField(23), aField(3), fc.constant('*'), fc.constant('0-23')),
    fc.constantFrom('*', '*', '*/2', '1-15', '28-31'),
    fc.constantFrom('*', '*', '0', '6', '1-5'),
  )
  .map(([minute, hour, day, weekday]) => `${minute} ${hour} ${day} * ${weekday}`);

/** By every minute that passes: a named time starts in the first minute whose clock is not before it. */
function watchClock(cron: string, timezone: string, noon: number): readonly number[] {
  const wallOf = readWall(timezone);
  const minutes = Array.from({ length: 5 * 1_440 }, (_, n) => noon - 2 * dayMs + n * minuteMs);
  const walls = minutes.map(wallOf);
  const starts = new Set<number>();
  for (const calendar of readCron(cron).map(toCalendar)) {
    const isNamed = (wall: number): boolean => {
      const date = new Date(wall);
      const [hour, minute] = [date.getUTCHours(), date.getUTCMinutes()];
      return calendar.hours.includes(hour) && calendar.minutes.includes(minute) && calendar.matches(date);
    };
    if (calendar.hours.length === 24) {
      for (const [n, wall] of walls.entries()) if (isNamed(wall)) starts.add(minutes[n] ?? 0);
      continue;
    }
    let seen = walls[0] ?? 0;
    for (const [n, wall] of walls.entries()) {
      for (let named = seen + minuteMs; named <= wall; named += minuteMs)
        if (isNamed(named)) starts.add(minutes[n] ?? 0);
      seen = Math.max(seen, wall);
    }
  }
  return [...starts].sort((a, b) => a - b).filter((at) => at > noon - dayMs && at < noon + 2 * dayMs);
}

it('starts when a watcher of the clock would, in every zone and night of a change', () => {
  fc.assert(
    fc.property(aNight, aLine, ({ timezone, noon }, cron) => {
      const found = nextStarts(cron, { timezone, after: noon - dayMs, count: 5_000 });
      expect(found.filter((at) => at < noon + 2 * dayMs)).toEqual(watchClock(cron, timezone, noon));
    }),
    { numRuns: runs(60) },
  );
});

/** All moments that Temporal receives. */
function expand(plan: StartPlan): readonly number[] {
  if (!('calendars' in plan)) return [];
  const starts = plan.calendars.flatMap(({ year, month, days, hours, minutes }) =>
    days.flatMap((day) =>
      hours.flatMap((hour) => minutes.map((minute) => Date.UTC(year, month - 1, day, hour, minute))),
    ),
  );
  return starts.sort((a, b) => a - b);
}

it('plans for Temporal each of these moments once, and nothing else', () => {
  fc.assert(
    fc.property(aNight, aLine, ({ timezone, noon }, cron) => {
      const plan = planStarts(cron, { timezone, now: noon });
      if ('lines' in plan) {
        expect(plan).toEqual({ lines: readCron(cron), timezone });
        return;
      }
      const until = noon + (plannedDays - 4) * dayMs;
      const within = (at: number): boolean => at > noon && at < until;
      const starts = nextStarts(cron, { timezone, after: noon, count: 600_000 });
      expect(expand(plan).filter(within)).toEqual(starts.filter(within));
    }),
    { numRuns: runs(8) },
  );
});

it('plans few calendars, and the lines themselves where no clock changes', () => {
  const now = Date.parse('2026-11-28T12:00Z');
  for (const timezone of ['UTC', 'Asia/Tokyo', 'America/Phoenix']) {
    expect(planStarts('@daily', { timezone, now })).toEqual({ lines: ['0 0 * * *'], timezone });
  }
  for (const cron of ['* * * * *', '30 4 * * mon-fri', '*/7 1-22 * * *']) {
    const plan = planStarts(cron, { timezone: 'Australia/Lord_Howe', now });
    expect('calendars' in plan && plan.calendars.length).toBeLessThan(120);
  }
});

it.each([
  ['0 9 * * 1-5', 'Europe/Berlin', '2026-01-05T08:00Z', '2026-01-02T08:00Z'],
  ['0 9 * * 1-5', 'Europe/Berlin', '2026-01-05T08:01Z', '2026-01-05T08:00Z'],
  ['30 2 * * *', 'Europe/Berlin', '2027-03-28T01:00Z', '2027-03-27T01:30Z'],
  ['30 2 * * *', 'Europe/Berlin', '2027-03-29T00:30Z', '2027-03-28T01:00Z'],
  ['0 0 6 9 *', 'America/Santiago', '2027-09-07T03:00Z', '2027-09-06T03:00Z'],
  ['0 0 29 2 *', 'UTC', '2028-02-29T00:00Z', '2024-02-29T00:00Z'],
  ['0 0 * * *', 'Asia/Kathmandu', '2026-05-02T18:15Z', '2026-05-01T18:15Z'],
])('%s in %s started before %s at %s', (cron, timezone, before, start) => {
  expect(previousStart(cron, { timezone, before: Date.parse(before) })).toBe(Date.parse(start));
});

it('finds the periods of a calendar without a gap, whatever the clock does', () => {
  const lines = ['30 2 * * *', '0 0 * * *', '*/20 * * * *', '0 1-3 * * *', '0 9 * * 1-5', '15 3 1 * *'];
  const zones = [
    'Europe/Berlin',
    'America/New_York',
    'America/Santiago',
    'Africa/Cairo',
    'Australia/Lord_Howe',
    'UTC',
  ];
  fc.assert(
    fc.property(
      fc.constantFrom(...lines),
      fc.constantFrom(...zones),
      fc.integer({ min: Date.parse('2024-01-01'), max: Date.parse('2030-01-01') }),
      (cron, timezone, after) => {
        const starts = nextStarts(cron, { timezone, after, count: 4 });
        const before = starts.slice(1).map((start) => previousStart(cron, { timezone, before: start }));
        expect(before).toEqual(starts.slice(0, -1));
      },
    ),
    { numRuns: runs(100) },
  );
});
