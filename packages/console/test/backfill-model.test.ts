import type { Backfill, ScheduleGap } from '@capstan/core/contracts/schedule';
import { expect, test } from 'vitest';
import { describeBackfill, describeGap, toBackfillRequest } from '../src/pages/schedules/model.ts';

const now = Date.parse('2026-03-31T12:00:00Z');

test.each([
  ['UTC', '2026-01-01', '2026-01-31', '2026-01-01T00:00:00.000Z', '2026-01-31T23:59:59.999Z'],
  ['Europe/Berlin', '2026-03-29', '2026-03-29', '2026-03-28T23:00:00.000Z', '2026-03-29T21:59:59.999Z'],
  ['UTC', '2026-04-01', '2026-04-01', '2026-04-01T00:00:00.000Z', '2026-04-01T23:59:59.999Z'],
  ['UTC', '2026-03-30', '2026-03-31', '2026-03-30T00:00:00.000Z', '2026-03-31T12:00:00.000Z'],
])('the dates of %s from %s until %s are the moments %s to %s', (timezone, from, until, first, last) => {
  expect(toBackfillRequest({ from, until, atOnce: 2 }, timezone, now)).toEqual({
    from: first,
    until: last,
    at_once: 2,
  });
});

const runs = { open: 0, succeeded: 0, failed: 0, cancelled: 0 };

test.each<[Pick<Backfill, 'state' | 'moments' | 'left' | 'runs' | 'existing'>, string]>([
  [
    { state: 'running', moments: 31, left: 27, existing: 3, runs: { ...runs, open: 2, failed: 1 } },
    'fills back: 4 of 31 moments; 2 open, 1 failed; 3 moments had a run before',
  ],
  [{ state: 'done', moments: 1, left: 0, existing: 0, runs }, 'done: 1 of 1 moment'],
  [
    { state: 'cancelled', moments: 9, left: 8, existing: 1, runs: { ...runs, cancelled: 1 } },
    'cancelled: 1 of 9 moments; 1 cancelled; 1 moment had a run before',
  ],
])('a backfill %j is described', (backfill, text) => {
  expect(describeBackfill(backfill)).toBe(text);
});

test.each<[Pick<ScheduleGap, 'outcome' | 'count' | 'moments' | 'reason'>, RegExp]>([
  [
    { outcome: 'missed', count: 3, moments: ['2026-01-01T03:00:00Z'], reason: 'away' },
    /^3 starts were missed, the first of .*2026.*: away$/,
  ],
  [
    { outcome: 'skipped', count: 1, moments: ['2026-01-01T03:00:00Z'], reason: 'open' },
    /^1 start was skipped, of .*2026.*: open$/,
  ],
  [{ outcome: 'skipped', count: 2, moments: [], reason: 'x' }, /^2 starts were skipped: x$/],
])('starts that came to nothing %j are described', (gap, text) => {
  expect(describeGap(gap, 'UTC')).toMatch(text);
});
