import { expect, it } from 'vitest';
import { hasOverrunOften, lastOverrunMs } from '../../src/money/overruns.ts';

const minute = 60_000;
const now = Date.parse('2026-11-26T10:00:00.000Z');

it.each<[name: string, minutesAgo: (number | null)[] | undefined, isOften: boolean]>([
  ['none', undefined, false],
  ['one', [1, null, null], false],
  ['two', [1, 2, null], false],
  ['three within an hour', [1, 30, 60], true],
  ['three, of which the first is an hour before the third', [1, 30, 61], false],
  ['three within an hour, the third almost an hour ago', [59, 60, 61], true],
  ['three within an hour, the third an hour ago', [60, 61, 62], false],
])('after %s, the worst case is lost: %s %s', (_, minutesAgo, isOften) => {
  const overran = minutesAgo?.map((minutes) => (minutes === null ? null : now - minutes * minute));
  expect(hasOverrunOften(overran, now)).toBe(isOften);
});

it('the last overrun is that of any project', () => {
  expect(lastOverrunMs({})).toBeNull();
  expect(lastOverrunMs({ prj_1: [3, 1, null], prj_2: [5, null, null], prj_3: [null] })).toBe(5);
  expect(lastOverrunMs({ prj_1: [-5, null, null], prj_2: [null, null, null] })).toBe(-5);
});
