import { expect, it } from 'vitest';
import { isPassing, readTransientTexts } from '../../src/call/judge.ts';

it('a list is texts with a bar between them, whose letters may be small or capital', () => {
  expect(readTransientTexts('')).toEqual([]);
  expect(readTransientTexts(' Out of GPU memory|| rate limit, later | ')).toEqual([
    'out of gpu memory',
    'rate limit, later',
  ]);
});

it.each([
  [408, 'no', true],
  [409, 'no', true],
  [422, 'CUDA error: OUT OF GPU MEMORY', true],
  [422, 'out of memory', false],
  [404, 'no', false],
])('HTTP %i with "%s" passes: %s', (status, message, passes) => {
  expect(isPassing({ status, message }, ['out of gpu memory'])).toBe(passes);
});
