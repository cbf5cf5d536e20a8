import { MediaReference } from '@capstan/capability';
import { parseMediaPath } from '@capstan/core/contracts/media';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { refuseFile, takesMedia, toMediaName } from '../src/form/media-model.ts';
import { formatBytes } from '../src/shared/format.ts';

test.each([
  [z.toJSONSchema(MediaReference), true],
  [{ type: 'string', pattern: '^media://' }, true],
  [{ type: 'string', examples: ['media://job_1/a.mp4'] }, true],
  [{ type: 'string', pattern: '^https://' }, false],
  [{ type: 'string', default: 'a' }, false],
  [{ type: 'string' }, false],
])('%j takes a file: %s', (schema, takes) => expect(takesMedia(schema as never)).toBe(takes));

test.each([
  ['clip.mp4', 'clip.mp4'],
  ['my clip (1).mp4', 'my-clip-1-.mp4'],
  ['../../etc/passwd', 'etc-passwd'],
  ['Übung.MOV', 'U-bung.MOV'],
  ['日本.png', 'file.png'],
  ['', 'file'],
])('a file %j is stored as %s', (name, stored) => expect(toMediaName(name)).toBe(stored));

test('a file of any name is one segment of a media path', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 300 }), (name) => {
      const path = parseMediaPath(`job_1/${toMediaName(name)}`);
      expect(path?.file).toBe(toMediaName(name));
    }),
  );
});

test('a file that is too large is not sent, and both sizes are shown', () => {
  expect(refuseFile({ name: 'a.mp4', size: 2_500_000 }, 1_000_000)).toBe(
    'a.mp4 has 2.5 MB; at most 1.0 MB are allowed',
  );
  expect(refuseFile({ name: 'a.mp4', size: 1_000_000 }, 1_000_000)).toBeNull();
  expect(refuseFile({ name: 'a.mp4', size: 1_000_000 }, null)).toBeNull();
  expect([0, 999, 1_234, 45_000_000].map(formatBytes)).toEqual(['0 bytes', '999 bytes', '1.2 kB', '45 MB']);
});
