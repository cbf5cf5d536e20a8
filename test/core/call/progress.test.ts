import { expect, it } from 'vitest';
import { readProgress } from '../../../src/core/call/progress.ts';

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
])('reads %j', (line, progress) => {
  expect(readProgress(line)).toStrictEqual(progress);
});

it('keeps 200 characters of a message', () => {
  expect(readProgress({ progress: 0, message: `${'x'.repeat(200)}y` })?.message).toBe('x'.repeat(200));
});

it('shows no control character, and no half of a character', () => {
  expect(readProgress({ progress: 0, message: 'a\u001b[2J\nb\ud800' })?.message).toBe('a [2J b\ufffd');
});

it.each([
  null,
  0.5,
  '0.5',
  [],
  [{ progress: 0.5 }],
  {},
  { progress: '0.5' },
  { progress: -0.1 },
  { progress: 1.1 },
  { progress: Number.NaN },
  { progress: 0.5, message: 7 },
  { progress: 0.5, message: null },
  { progress: 0.5, output: 1 },
])('takes %j for no line of progress', (line) => {
  expect(readProgress(line)).toBeNull();
});
