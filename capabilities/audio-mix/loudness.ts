/**
 * Loudness after EBU R128, by ffmpeg's loudnorm: the first pass measures, the second corrects with what was
 * measured, which changes the level evenly instead of pumping.
 */
import { z } from 'zod';

const targetLufs = -16;
const targetPeakDbtp = -1.5;
/** LU; wide enough that music and speech keep their dynamics. */
const targetRange = 11;

const Level = z.string().transform((text) => Number(text));

const Measurement = z.object({
  input_i: Level,
  input_tp: Level,
  input_lra: Level,
  input_thresh: Level,
  target_offset: Level,
});
export type Measurement = z.infer<typeof Measurement>;

const target = `loudnorm=I=${targetLufs}:TP=${targetPeakDbtp}:LRA=${targetRange}`;

/** A filter that changes nothing worth keeping and prints a measurement at the end. */
export const measureLoudness = `${target}:print_format=json`;

export function correctLoudness(measured: Measurement): string {
  return [
    target,
    `measured_I=${measured.input_i}`,
    `measured_TP=${measured.input_tp}`,
    `measured_LRA=${measured.input_lra}`,
    `measured_thresh=${measured.input_thresh}`,
    `offset=${measured.target_offset}`,
    'linear=true',
  ].join(':');
}

/**
 * Reads the measurement from what ffmpeg printed.
 * @throws Error when there is none, or the sound is silence
 */
export function readMeasurement(printed: string): Measurement {
  const report = /\{[^{}]*"input_i"[^{}]*\}/.exec(printed)?.[0];
  if (report === undefined) throw new Error('ffmpeg printed no loudness measurement');
  const measured = Measurement.parse(JSON.parse(report));
  if (!Number.isFinite(measured.input_i)) throw new Error('there is no sound to mix: both tracks are silent');
  return measured;
}
