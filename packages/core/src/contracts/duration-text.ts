/**
 * The text of a duration, for every key, option and filter that takes one. This file imports nothing, not even zod, so
 * that workflows may import it.
 */

/** The units of `1h30m`, in milliseconds. `min` is `m`, because Capstan also writes `2 min 10 s`. */
export const durationUnitMs = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
} as const;

const number = String.raw`\d+(?:\.\d+)?`;
const part = `${number} ?(?:ms|min|[smhdw])`;
const minutes = `${number}M(?:${number}S)?`;
const time = `T(?:${number}H(?:${minutes}|${number}S)?|${minutes}|${number}S)`;

/** Numbers with units, which are added up, or ISO 8601 without years and months, whose length varies. */
export const durationPattern = new RegExp(
  `^(?:${part}(?: ?${part})*|P(?:${number}W|${number}D(?:${time})?|${time}))$`,
);

export const durationExamples = '500ms, 30s, 5m, 2h, 1d, 1h30m, PT1H30M';

export const durationFault = `a duration is written as numbers with units, or in ISO 8601: ${durationExamples}`;

/** `1.5s` → 1500, `1h30m` and `PT1H30M` → 5400000. Rounds to whole milliseconds. Undefined for any other text. */
export function readDuration(text: string): number | undefined {
  if (!durationPattern.test(text)) return undefined;
  let ms = 0;
  let amount = 0;
  // The units of ISO 8601 are those of the other form in upper case; its P and T have no amount before them.
  for (const part of text.match(/[\d.]+|[a-z]+|[A-Z]/g) ?? []) {
    if (/[\d.]/.test(part)) amount = Number(part);
    else if (part !== 'P' && part !== 'T')
      ms += amount * durationUnitMs[part.toLowerCase() as keyof typeof durationUnitMs];
  }
  return Math.round(ms);
}
