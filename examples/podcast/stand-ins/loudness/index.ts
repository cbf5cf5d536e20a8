/**
 * Brings a WAV file to a loudness, measured by ITU-R BS.1770: two filters that model the ear, blocks of 400 ms, and
 * gates that leave out pauses. The work is real; only ffmpeg reads more formats, and limits peaks.
 */
import { defineCapability, MediaReference } from '@capstan/capability';
import { z } from 'zod';
import { readWav, type Sound, secondsOf, writeWav } from '../../../stand-ins/wav.ts';

/** A filter over the last two inputs and outputs. */
interface Filter {
  readonly b: readonly [number, number, number];
  readonly a: readonly [number, number];
}

/** The two filters of BS.1770 for any rate: what a head does to high tones, and the loss of low ones. */
function weightingOf(rate: number): readonly Filter[] {
  const high = Math.tan((Math.PI * 1681.974450955533) / rate);
  const [gain, q] = [10 ** (3.999843853973347 / 20), 0.7071752369554196];
  const shelf = gain ** 0.4996667741545416;
  const norm = 1 + high / q + high ** 2;
  const low = Math.tan((Math.PI * 38.13547087602444) / rate);
  const lowQ = 0.5003270373238773;
  const lowNorm = 1 + low / lowQ + low ** 2;
  return [
    {
      b: [
        (gain + (shelf * high) / q + high ** 2) / norm,
        (2 * (high ** 2 - gain)) / norm,
        (gain - (shelf * high) / q + high ** 2) / norm,
      ],
      a: [(2 * (high ** 2 - 1)) / norm, (1 - high / q + high ** 2) / norm],
    },
    { b: [1, -2, 1], a: [(2 * (low ** 2 - 1)) / lowNorm, (1 - low / lowQ + low ** 2) / lowNorm] },
  ];
}

function apply(samples: Float64Array, { b, a }: Filter): Float64Array {
  let [x1, x2, y1, y2] = [0, 0, 0, 0];
  return samples.map((x) => {
    const y = b[0] * x + b[1] * x1 + b[2] * x2 - a[0] * y1 - a[1] * y2;
    [x1, x2, y1, y2] = [x, x1, y, y1];
    return y;
  });
}

function loudnessOf(power: number): number {
  return -0.691 + 10 * Math.log10(power);
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** @returns LUFS; -Infinity for silence */
function measure({ rate, channels }: Sound): number {
  const weighted = channels.map((samples) => weightingOf(rate).reduce(apply, samples));
  const [block, step] = [Math.round(0.4 * rate), Math.round(0.1 * rate)];
  const powers: number[] = [];
  for (let from = 0; from + block <= (weighted[0]?.length ?? 0); from += step) {
    const parts = weighted.map((samples) => samples.subarray(from, from + block));
    powers.push(parts.reduce((sum, part) => sum + part.reduce((all, x) => all + x * x, 0) / block, 0));
  }
  const heard = powers.filter((power) => loudnessOf(power) > -70);
  const gate = loudnessOf(mean(heard)) - 10;
  return loudnessOf(mean(heard.filter((power) => loudnessOf(power) > gate)) || 0);
}

const mostPeak = 10 ** (-1 / 20);

export const capability = defineCapability({
  name: 'loudness',
  version: '1.0.0',
  description: 'Brings a WAV file to a loudness, with peaks of at most -1 dBFS.',
  input: z.object({
    audio: MediaReference,
    loudness_lufs: z.number().min(-40).max(-8).default(-16),
    output_path: MediaReference,
  }),
  output: z.object({ output_path: z.string(), loudness_lufs: z.number() }),
  cost_model: { type: 'free', rate_usd: 0 },
  deterministic: true,
  tags: ['local', 'stand-in'],
  max_concurrency: 2,
  exec: async ({ audio, loudness_lufs, output_path }, { media, log }) => {
    const sound = await readWav(await media.download(audio));
    const before = measure(sound);
    if (!Number.isFinite(before)) throw new Error('audio: the file is silent');
    const peak = sound.channels.reduce(
      (most, samples) => samples.reduce((high, x) => Math.max(high, Math.abs(x)), most),
      0,
    );
    const gain = Math.min(10 ** ((loudness_lufs - before) / 20), mostPeak / peak);
    log.info(`${secondsOf(sound).toFixed(1)} s at ${before.toFixed(1)} LUFS, times ${gain.toFixed(2)}`);
    const levelled = { ...sound, channels: sound.channels.map((samples) => samples.map((x) => x * gain)) };
    const result = await media.temporaryPath('levelled.wav');
    await writeWav(result, levelled);
    await media.upload(result, output_path, 'audio/wav');
    return { output_path, loudness_lufs: Number(measure(levelled).toFixed(2)) };
  },
});
