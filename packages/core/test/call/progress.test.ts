import { expect, it } from 'vitest';
import { isDeltaLine, isProgressLine, readProgress } from '../../src/call/outcome.ts';

it.each([
  [{ progress: 0 }, { progress: 0 }],
  [{ progress: 1 }, { progress: 1 }],
  [
    { progress: 0.5, message: 'half' },
    { progress: 0.5, message: 'half' },
  ],
  [
    { progress: 0.5, message: '' },
    { progress: 0.5, message: '' },
  ],
  [{ progress: 0.5, message: 7 }, { progress: 0.5 }],
  [{ progress: 0.5, message: null, eta_s: 3 }, { progress: 0.5 }],
])('reads %j', (line, progress) => {
  expect(readProgress(line)).toStrictEqual(progress);
});

it('keeps 200 characters of a message', () => {
  expect(readProgress({ progress: 0, message: `${'x'.repeat(200)}y` })?.message).toBe('x'.repeat(200));
});

it('shows no control character, and no half of a character', () => {
  expect(readProgress({ progress: 0, message: 'a\u001b[2J\nb\ud800' })?.message).toBe('a [2J b\ufffd');
});

it.each([{ progress: '0.5' }, { progress: -0.1 }, { progress: 1.1 }, { progress: Number.NaN }])(
  'cannot use %j, which is a line of progress still',
  (line) => {
    expect([isProgressLine(line), readProgress(line)]).toEqual([true, null]);
  },
);

it.each([
  null,
  0.5,
  '0.5',
  [],
  [{ progress: 0.5 }],
  {},
  { ok: true, progress: 0.5 },
  { ok: false, error: 'busy', progress: 2 },
])('takes %j for no line of progress', (line) => {
  expect(isProgressLine(line)).toBe(false);
});

it.each([
  [true, { delta: 'a' }],
  [true, { delta: null, at: 5 }],
  [false, { delta: 'a', ok: true }],
  [false, { ok: true }],
  [false, { content: 'a' }],
  [false, {}],
  [false, [{ delta: 'a' }]],
  [false, Object.assign([], { delta: 'a' })],
  [false, null],
  [false, 'delta'],
])('%s: %j is a part of the result', (expected, value) => {
  expect(isDeltaLine(value)).toBe(expected);
});
