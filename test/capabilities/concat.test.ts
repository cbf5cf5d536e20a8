import { open } from 'node:fs/promises';
import { checkCapability } from '@capstan/capability/conformance';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { capability } from '../../capabilities/concat/index.ts';
import { type Sample, startSample } from './media.ts';

let sample: Sample;
beforeAll(async () => {
  sample = await startSample(capability);
  const h264 = '-c:v libx264 -preset ultrafast -pix_fmt yuv420p';
  await sample.make(
    'media://job_1/wide.mp4',
    `-f lavfi -i color=red:s=160x90:r=25:d=1 -f lavfi -i sine=440:r=44100:d=0.6 ${h264} -c:a aac`,
  );
  await sample.make('media://job_1/tall.mkv', `-f lavfi -i color=blue:s=90x160:r=30:d=1.2 ${h264}`);
  await sample.make(
    'media://job_1/other.avi',
    '-f lavfi -i color=lime:s=320x180:r=15:d=1 -f lavfi -i sine=880:r=22050:d=1.5 -c:v mpeg4 -c:a mp3 -ac 1',
  );
  await sample.make('media://job_1/sound.wav', '-f lavfi -i sine=440:d=1');
});
afterAll(() => sample.close());

function clips(...files: string[]) {
  return files.map((file) => ({ media_store_path: `media://job_1/${file}` }));
}
const output_path = 'media://job_1/out/final.mp4';

/** Mean colour of one frame, as [r, g, b]. */
async function colourAt(path: string, seconds: number): Promise<number[]> {
  const pixel = `${path}-${seconds}.rgb`;
  const one = ['-frames:v', '1', '-vf', 'scale=1:1:flags=area', '-pix_fmt', 'rgb24', '-f', 'rawvideo'];
  await sample.ffmpeg(['-ss', String(seconds), '-i', path, ...one, pixel]);
  const file = await open(pixel);
  const { buffer } = await file.read(Buffer.alloc(3));
  await file.close();
  return [...buffer];
}

it('joins clips of different size, rate and sound in order', async () => {
  const { status, body } = await sample.exec({
    clips: clips('wide.mp4', 'tall.mkv', 'other.avi'),
    output_path,
  });
  expect([status, body.error]).toEqual([200, undefined]);
  const output = body.output as { output_path: string; duration_ms: number };
  expect(output.output_path).toBe(output_path);
  expect(Math.abs(output.duration_ms - 3_200)).toBeLessThan(150);
  const result = await sample.fetch(output_path);
  expect(await sample.probe(result)).toEqual({
    durationS: expect.closeTo(3.2, 0),
    video: { codec: 'h264', width: 160, height: 90, frameRate: '25/1' },
    hasAudio: true,
  });
  const [red, blue, green] = await Promise.all([0.5, 1.6, 2.8].map((at) => colourAt(result, at)));
  expect(red?.[0]).toBeGreaterThan(200);
  expect(blue?.[2]).toBeGreaterThan(50);
  expect(Math.max(blue?.[0] ?? 255, blue?.[1] ?? 255)).toBeLessThan(blue?.[2] ?? 0);
  expect(green?.[1]).toBeGreaterThan(200);
});

it('writes the index first, so that players start before the end is loaded', async () => {
  await sample.exec({ clips: clips('wide.mp4'), output_path });
  const file = await open(await sample.fetch(output_path));
  const bytes = await file.readFile();
  await file.close();
  expect(bytes.indexOf('moov')).toBeLessThan(bytes.indexOf('mdat'));
});

it.each([
  ['a clip that does not exist', clips('missing.mp4'), /missing\.mp4 does not exist/],
  ['a clip without a picture', clips('sound.wav'), /sound\.wav has no picture/],
  ['no clips', [], /^clips: /],
])('answers 422 for %s', async (_name, given, error) => {
  const { status, body } = await sample.exec({ clips: given, output_path });
  expect([status, body.error]).toEqual([422, expect.stringMatching(error)]);
});

it('never follows a playlist to other files', async () => {
  await sample.make('media://job_1/list.m3u8', '-f lavfi -i color=red:s=32x32:d=1 -c:v libx264 -f hls');
  const { status, body } = await sample.exec({ clips: clips('list.m3u8'), output_path });
  expect([status, body.error]).toEqual([422, expect.stringMatching(/not on whitelist/)]);
});

it('keeps the contract of a capability', async () => {
  expect((await checkCapability(sample.url)).filter(({ ok }) => !ok)).toEqual([]);
});

it('logs what it is about to do, for a caller that takes lines', async () => {
  const answer = await fetch(`${sample.url}/exec`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/x-ndjson' },
    body: JSON.stringify({ clips: clips('wide.mp4'), output_path }),
  });
  const lines = (await answer.text()).trim().split('\n');
  const message = 'joins 1 clips, 1.0 s, as 160x90 at 25/1 fps';
  expect(lines.map((line) => JSON.parse(line))).toContainEqual({ log: { level: 'info', message } });
});
