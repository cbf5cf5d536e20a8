import { expect, it } from 'vitest';
import { findMediaReferences } from '../../../src/cli/render/run.ts';

it('finds every media reference of an output once, however deep', () => {
  const output = {
    video: 'media://job_1/out.mp4',
    stills: [{ at: 1, file: 'media://job_1/stills/1.png' }, 'media://job_1/out.mp4'],
    text: 'see media://job_1/x',
    escape: 'media://job_1/../secret',
    nothing: null,
  };
  expect(findMediaReferences(output)).toEqual(['media://job_1/out.mp4', 'media://job_1/stills/1.png']);
});
