/** Durations: as authors write them, which the contracts define as `Duration`, and as sentences for people state them. */
import { durationExamples, readDuration, durationUnitMs as unitMs } from './contracts/duration-text.ts';

/** @throws RangeError when the text is not a duration */
export function parseDuration(text: string): number {
  const ms = readDuration(text);
  if (ms === undefined)
    throw new RangeError(`"${text.slice(0, 40)}" is no duration; write ${durationExamples}`);
  return ms;
}

export const durationUnits: readonly (readonly [name: string, ms: number])[] = [
  ['d', unitMs.d],
  ['h', unitMs.h],
  ['min', unitMs.m],
  ['s', unitMs.s],
];

/** `13.2 ms`, `340 ms`, `2.7 s`, `2 min 10 s`, `3 h 5 min`, `2 d 4 h`: the two greatest units, rounded down. */
export function formatDuration(ms: number): string {
  const size = Math.max(0, ms);
  if (size < 100) return `${Math.round(size * 10) / 10} ms`;
  if (size < 1_000) return `${Math.round(size)} ms`;
  if (size < 10_000) return `${(Math.floor(size / 100) / 10).toFixed(1)} s`;
  const first = durationUnits.findIndex(([, unit]) => size >= unit);
  const [name = 's', unit = 1_000] = durationUnits[first] ?? [];
  const [nextName, nextUnit = 1] = durationUnits[first + 1] ?? [];
  const whole = Math.floor(size / unit);
  const rest = Math.floor((size - whole * unit) / nextUnit);
  return nextName === undefined || rest === 0 ? `${whole} ${name}` : `${whole} ${name} ${rest} ${nextName}`;
}
