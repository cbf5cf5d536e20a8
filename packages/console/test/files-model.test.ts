/** The files of a run: each once, with its maker, its price and the file before it. */
import type { Json } from '@capstan/core/contracts/primitives';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { explainMissing } from '../src/media/missing.ts';
import { describeFiles, type FileMaker, listFiles, mediaIn } from '../src/pages/run/files/files-model.ts';

const at = (file: string): string => `media://job_1/${file}`;

const job = { photo: at('photo.png'), title: 'media: no reference' };
const makers: readonly FileMaker[] = [
  {
    step: 'scale',
    cost_usd: 0.01,
    input: { from: at('photo.png'), mask: at('mask.wav'), output_path: at('large.png') },
    output: { path: at('large.png'), from: at('photo.png') },
  },
  { step: 'speak', item: 2, cost_usd: 0.002, output: [at('voice/2.mp3')] },
  {
    step: 'pack',
    cost_usd: 0,
    input: { a: at('large.png') },
    output: { all: at('all.zip'), a: at('large.png') },
  },
];

describe('the files of a run', () => {
  test('are its results, then those of its steps, then those of its job, each once', () => {
    const files = listFiles(job, makers, { output: { picture: at('large.png'), other: at('told.mp4') } });
    expect(
      files.map(({ name, kind, madeBy, isResult }) => [name, kind, madeBy?.step ?? null, isResult]),
    ).toEqual([
      ['large.png', 'image', 'scale', true],
      ['told.mp4', 'video', null, true],
      ['2.mp3', 'audio', 'speak', false],
      ['all.zip', 'file', 'pack', false],
      ['photo.png', 'image', null, false],
    ]);
    expect(files[2]?.madeBy).toEqual({ step: 'speak', item: 2, cost_usd: 0.002 });
    expect(describeFiles(files)).toBe('2 results, 2 files of steps, 1 of the job');
  });

  test('have before them the file of the same kind, else any that the step was given', () => {
    const files = listFiles(job, makers, { output: undefined });
    const before = Object.fromEntries(files.map((file) => [file.name, file.before]));
    expect(before).toEqual({
      'large.png': [at('photo.png')],
      '2.mp3': [],
      'all.zip': [at('large.png')],
      'photo.png': [],
    });
  });

  test('of a run that passes its input on are those of the job', () => {
    const echo = { step: 'echo', cost_usd: 0, input: job, output: job };
    expect(listFiles(job, [echo], { output: job })).toMatchObject([{ madeBy: null, isResult: false }]);
    expect(listFiles(undefined, [], { output: undefined })).toEqual([]);
  });

  test('are found at any depth of any value, and nothing else is', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.array(fc.string()), (value, path) => {
        const nested = path.reduce<Json>((inner, name) => ({ [`k${name}`]: [inner] }), at('x.png'));
        expect(mediaIn([value as Json, nested])).toContain(at('x.png'));
        expect(mediaIn(value as Json).every((one) => one.startsWith('media://'))).toBe(true);
      }),
    );
  });
});

test.each([
  [404, /does not exist/],
  [403, /may not read/],
  [503, /status 503/],
  [200, /cannot show the file/],
  [null, /cannot be reached/],
])('a file that is not shown has a reason, by the status %s', (status, words) => {
  expect(explainMissing(status)).toMatch(words);
});
