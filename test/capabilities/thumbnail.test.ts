import { readFile } from 'node:fs/promises';
import { checkCapability } from '@capstan/capability/conformance';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { capability } from '../../capabilities/thumbnail/index.ts';
import { type Sample, startSample } from './media.ts';

let sample: Sample;
beforeAll(async () => {
  sample = await startSample(capability);
  await sample.make(
    'media://j/video.mp4',
    '-f lavfi -i testsrc=s=160x90:r=10:d=2 -c:v libx264 -preset ultrafast -pix_fmt yuv420p',
  );
});
afterAll(() => sample.close());

function take(output_path: string, more: object = {}) {
  return sample.exec({ video: { media_store_path: 'media://j/video.mp4' }, output_path, ...more });
}

it.each([
  ['media://j/a.jpg', [0xff, 0xd8, 0xff]],
  ['media://j/a.png', [0x89, 0x50, 0x4e]],
])('writes %s in the format of its name, as large as the video', async (output_path, start) => {
  const { body } = await take(output_path, { at_ms: 500 });
  expect(body).toEqual({ ok: true, output: { output_path, width: 160, height: 90 } });
  const bytes = await readFile(await sample.fetch(output_path));
  expect([...bytes.subarray(0, 3)]).toEqual(start);
});

it('scales to the asked width and keeps the proportions', async () => {
  const { body } = await take('media://j/small.jpg', { width: 80 });
  expect(body.output).toMatchObject({ width: 80, height: 45 });
});

it('takes the frame of the asked moment, up to the very end', async () => {
  const frames = new Set<string>();
  for (const at_ms of [0, 1_000, 2_000]) {
    expect((await take('media://j/frame.png', { at_ms })).body.error).toBeUndefined();
    frames.add((await readFile(await sample.fetch('media://j/frame.png'))).toString('base64'));
  }
  expect(frames.size).toBe(3);
});

it.each([
  ['a moment after the end', { at_ms: 2_500 }, /at_ms is 2500, but the video ends at 2000/],
  ['an unknown format', { output_path: 'media://j/a.gif' }, /^output_path: /],
  ['no width at all', { width: 0 }, /^width: /],
])('answers 422 for %s', async (_name, more, error) => {
  const { status, body } = await take('media://j/never.jpg', more);
  expect([status, body.error]).toEqual([422, expect.stringMatching(error)]);
});

it('keeps the contract of a capability', async () => {
  expect((await checkCapability(sample.url)).filter(({ ok }) => !ok)).toEqual([]);
});
