import fc from 'fast-check';
import { expect, it } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { explainMediaPath, MediaFile, parseMediaPath } from '../src/contracts/media.ts';

it.each([
  [`job/${'a'.repeat(200)}`, /at most 128 characters; "a+"… has 200/],
  [`job/in/${'.a'.repeat(80)}.mp4`, /at most 128 characters; ".+"… has 164/],
  ['job/one two', /letters, digits, dots, _ and -, which "one two" is not/],
  ['job/a//b', /an empty segment/],
  ['job/', /an empty segment/],
  ['job/../b', /may not hold the segment "\.\."/],
  ['job', /one to seven segments, not 0/],
  ['job/1/2/3/4/5/6/7/8', /one to seven segments, not 8/],
])('%s is refused for its own fault', (path, fault) => {
  expect(parseMediaPath(path)).toBeNull();
  expect(explainMediaPath(path)).toMatch(fault);
});

it('names the length, and only then, of a segment that is wrong in nothing else', () => {
  const letters = fc.string({
    unit: fc.constantFrom('a', 'Z', '7', '_', '-', '.'),
    minLength: 1,
    maxLength: 200,
  });
  fc.assert(
    fc.property(letters, (segment) => {
      const { success, error } = MediaFile.safeParse(segment);
      if (success) return;
      const isNamed = /at most 128 characters/.test(error.issues[0]?.message ?? '');
      expect([segment, isNamed]).toEqual([segment, segment.length > 128]);
    }),
    { numRuns: runs(200) },
  );
});
