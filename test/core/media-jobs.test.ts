import { expect, test } from 'vitest';
import { findMediaJobs, findWrittenMediaJobs } from '../../src/core/media-jobs.ts';

test('names each job once, where it is mentioned first', () => {
  const value = {
    clips: [{ 'a/b': 'media://job_1/a.mp4' }, 'media://job_1/b.mp4'],
    output_path: 'media://job_2/x/y.mp4',
    text: 'see media://job_3/a.mp4',
    n: 1,
    none: null,
  };
  expect([...findMediaJobs(value)]).toEqual([
    ['job_1', { reference: 'media://job_1/a.mp4', pointer: '/clips/0/a~1b' }],
    ['job_2', { reference: 'media://job_2/x/y.mp4', pointer: '/output_path' }],
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
  };
  expect([...findWrittenMediaJobs(template).keys()]).toEqual(['job_1']);
});
