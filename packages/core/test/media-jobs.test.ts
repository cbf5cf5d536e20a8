import { expect, test } from 'vitest';
import { findMediaJobs, findWrittenMediaJobs } from '../src/media.ts';

test('names each job once, where it is mentioned first', () => {
  const value = {
    clips: [{ 'a/b': 'media://job_1/a.mp4' }, 'media://job_1/b.mp4'],
    output_path: 'media://job_2/x/y.mp4',
    text: 'see "media://job_3/a.mp4", media://job_1/c and MEDIA://job_4: a media:// reference',
    lines: ['a=media://job_5/x'],
    'media://job_6/a': 1,
    n: 1,
    none: null,
  };
  expect([...findMediaJobs(value)]).toEqual([
    ['job_1', { reference: 'media://job_1/a.mp4', pointer: '/clips/0/a~1b' }],
    ['job_2', { reference: 'media://job_2/x/y.mp4', pointer: '/output_path' }],
    [
      'job_3',
      {
        reference: 'media://job_3/a.mp4", media://job_1/c and MEDIA://job_4: a media:// reference',
        pointer: '/text',
      },
    ],
    ['job_4:', { reference: 'MEDIA://job_4: a media:// reference', pointer: '/text' }],
    ['job_5', { reference: 'media://job_5/x', pointer: '/lines/0' }],
    ['job_6', { reference: 'media://job_6/a', pointer: '/media:~1~1job_6~1a' }],
  ]);
});

test.each([
  ['MEDIA://job_1/a', 'job_1'],
  [' \n media://job_1/a', 'job_1'],
  ['media://job_1', 'job_1'],
  ['media:///a', ''],
  ['media://../job_1/a', '..'],
  ['media://job%5F1/a', 'job%5F1'],
])('takes %j for a reference, whatever becomes of it', (text, jobId) => {
  expect([...findMediaJobs([text]).keys()]).toEqual([jobId]);
});

test('leaves out of a template what an expression names', () => {
  const template = {
    a: 'media://{{ run.job_id }}/a',
    b: 'media://job_{{ job.n }}/a',
    c: 'media://job_1/{{ job.n }}',
    d: 'from media://{{ run.job_id }}/a to media://job_{{ job.n }}/b and media://job_2/{{ job.n }}',
  };
  expect([...findWrittenMediaJobs(template).keys()]).toEqual(['job_1', 'job_2']);
});
