import fc from 'fast-check';
import { expect, it } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { readCron } from '../../src/calendar/cron.ts';
import { cronPattern } from '../../src/contracts/schedule.ts';

it.each([
  ['*/5 0-6,18-23 1,15 * *', ['*/5 0-6,18-23 1,15 * *']],
  ['  30   4 * JAN,mar Mon-Fri ', ['30 4 * JAN,mar Mon-Fri']],
  ['@daily', ['0 0 * * *']],
  ['0 0 */2 * 1', ['0 0 */2 * 1']],
  ['5/15 0 29 2 *', ['5/15 0 29 2 *']],
])('takes %s', (text, lines) => {
  expect(readCron(text)).toEqual(lines);
});

it('means either where day and weekday are both given', () => {
  expect(readCron('0 12 13 * fri')).toEqual(['0 12 13 * *', '0 12 * * fri']);
});

it.each([
  ['60 * * * *', 'minute holds "60"; allowed is 0 to 59'],
  ['0 0 0 * *', 'day holds "0"; allowed is 1 to 31'],
  ['0 0 * foo *', 'month holds "foo"; allowed is 1 to 12 or jan to dec'],
  ['0 0 * * 1-8', 'weekday holds "8"; allowed is 0 to 7 or sun to sat'],
  ['0 17-9 * * *', 'hour holds "17-9", which ends before it begins'],
  ['*/0 * * * *', 'minute holds "*/0"; a step is at least 1'],
  ['0 0 1- * *', 'day holds "1-"; write *, 5, 1-5 or */5'],
  ['0 0 1,,2 * *', 'day holds ""; write *, 5, 1-5 or */5'],
  ['0 0 L * *', 'day holds "L"; allowed is 1 to 31'],
  ['0 0 * *', '4 fields; five are needed: minute, hour, day, month, weekday, such as "30 4 * * mon-fri"'],
  ['0 0 30 2 *', 'no month 2 has a day 30; it would never start'],
  ['0 0 31 4,6,9,11 *', 'no month 4,6,9,11 has a day 31; it would never start'],
  [
    'TZ=UTC 0 0 * * *',
    '6 fields; five are needed: minute, hour, day, month, weekday, such as "30 4 * * mon-fri"',
  ],
])('refuses %s and lists the allowed values', (text, message) => {
  expect(() => readCron(text)).toThrow(new RangeError(message));
});

it('refuses an unknown macro with the list of those there are', () => {
  expect(() => readCron('@every 5m')).toThrow(/"@every 5m" is no calendar; allowed are @hourly, @daily/);
});

function isTaken(text: string): boolean {
  try {
    return readCron(text).length > 0;
  } catch {
    return false;
  }
}

it('takes nothing that the documented pattern forbids', () => {
  const isPart = (text: string, at: number): boolean =>
    isTaken(['*', '*', '*', '*', '*'].map((star, index) => (index === at ? text : star)).join(' '));
  const numbers = ['0', '5', '09', '0031', '31', '60', '7', 'jan', 'DEC', 'sUn', 'L', '', '00000', '12', '1'];
  const value = fc.constantFrom(...numbers);
  const range = fc.oneof(
    value,
    fc.constant('*'),
    fc.tuple(value, value).map((ends) => ends.join('-')),
  );
  const step = fc.constantFrom('', '', '/2', '/0', '/010', '/12345', '/');
  const part = fc.tuple(range, step).map((texts) => texts.join(''));
  const fields = [0, 1, 2, 3, 4].map((at) => part.filter((text) => isPart(text, at)));
  const line = fc
    .tuple(...fields.map((field) => fc.array(field, { minLength: 1, maxLength: 2 })))
    .map((found) => found.map((parts) => parts.join(',')).join(' '));
  const pattern = new RegExp(cronPattern, 'u');
  fc.assert(
    fc.property(line, (text) => {
      fc.pre(isTaken(text));
      expect(text).toMatch(pattern);
    }),
    { numRuns: runs(100) },
  );
});

it('refuses of what the documented pattern allows only ranges in the wrong order and days that never come', () => {
  fc.assert(
    fc.property(fc.stringMatching(new RegExp(cronPattern, 'u')), (text) => {
      if (!isTaken(text)) expect(() => readCron(text)).toThrow(/ends before it begins|would never start/);
    }),
    { numRuns: runs(100) },
  );
});
