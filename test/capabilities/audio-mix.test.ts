import { checkCapability } from '@capstan/capability/conformance';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { capability } from '../../capabilities/audio-mix/index.ts';
import { isLong } from '../support/long.ts';
import { type Sample, startSample } from './media.ts';

let sample: Sample;
beforeAll(async () => {
  sample = await startSample(capability);
  const picture = '-f lavfi -i testsrc=s=64x64:r=25:d=4';
  const encoded = '-c:v libx264 -preset ultrafast -pix_fmt yuv420p -c:a aac';
  await sample.make('media://j/loud.mp4', `${picture} -f lavfi -i sine=440:d=4 ${encoded}`);
  if (isLong)
    await sample.make(
      'media://j/quiet.mp4',
      `${picture} -f lavfi -i sine=440:d=4 -af volume=-40dB ${encoded}`,
    );
  await sample.make('media://j/mute.webm', `${picture} -c:v libvpx -b:v 200k`);
  await sample.make('media://j/music.wav', '-f lavfi -i sine=1000:d=1.5');
  await sample.make('media://j/silence.wav', '-f lavfi -i anullsrc -t 1');
});
afterAll(() => sample.close());

function mix(video: string, music: string, more: object = {}) {
  return sample.exec({
    video: { media_store_path: `media://j/${video}` },
    music: { media_store_path: `media://j/${music}` },
    output_path: 'media://j/mixed.mp4',
    ...more,
  });
}

/** Integrated loudness of a stored file, measured by ebur128 and so apart from the capability's own way. */
async function measure(reference: string): Promise<number> {
  const path = await sample.fetch(reference);
  const printed = await sample.ffmpeg(['-i', path, '-map', '0:a', '-af', 'ebur128', '-f', 'null', '-']);
  return Number(
    /Integrated loudness:\s+I:\s+(-?[\d.]+) LUFS/.exec(printed.slice(printed.lastIndexOf('Summary')))?.[1],
  );
}

it.each(isLong ? ['loud.mp4', 'quiet.mp4', 'mute.webm'] : ['loud.mp4', 'mute.webm'])(
  'brings %s with music to -16 LUFS, and reports what the result measures',
  async (video) => {
    const { status, body } = await mix(video, 'music.wav');
    expect([status, body.error]).toEqual([200, undefined]);
    const output = body.output as { duration_ms: number; loudness_lufs: number; true_peak_dbtp: number };
    expect(Math.abs(output.loudness_lufs + 16)).toBeLessThanOrEqual(1);
    expect(Math.abs((await measure('media://j/mixed.mp4')) - output.loudness_lufs)).toBeLessThan(0.5);
    expect(output.true_peak_dbtp).toBeLessThanOrEqual(-1);
    expect(Math.abs(output.duration_ms - 4_000)).toBeLessThan(150);
    const facts = await sample.probe(await sample.fetch('media://j/mixed.mp4'));
    expect([facts.video?.codec, facts.hasAudio]).toEqual(['h264', true]);
  },
);

/** Loudness of one tone in the result. */
async function toneLevel(hertz: number): Promise<number> {
  const path = await sample.fetch('media://j/mixed.mp4');
  const band = `bandpass=f=${hertz}:width_type=h:w=50,volumedetect`;
  const printed = await sample.ffmpeg(['-i', path, '-map', '0:a', '-af', band, '-f', 'null', '-']);
  return Number(/mean_volume: (-?[\d.]+) dB/.exec(printed)?.[1]);
}

it('keeps the music under the video by music_gain_db, and repeats it to the end', async () => {
  await mix('loud.mp4', 'music.wav', { music_gain_db: -20 });
  const difference = (await toneLevel(440)) - (await toneLevel(1_000));
  expect(Math.abs(difference - 20)).toBeLessThan(3);
});

it('answers 422 when the input has no sound', async () => {
  const { status, body } = await mix('mute.webm', 'silence.wav');
  expect([status, body.error]).toEqual([422, expect.stringContaining('silent')]);
});

it('keeps the contract of a capability', async () => {
  expect((await checkCapability(sample.url)).filter(({ ok }) => !ok)).toEqual([]);
});
