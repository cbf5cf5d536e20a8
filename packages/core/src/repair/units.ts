/** Units of numbers: in a text such as "10s", in a key's name such as `timeout_ms`, in a description ("in seconds"). */
import { wordsOf } from './names.ts';

export interface NumberUnit {
  readonly dimension: string;
  /** In the dimension's base unit. */
  readonly size: number;
}

const spellings: Readonly<Record<string, readonly [dimension: string, size: number]>> = {
  'ms msec msecs millis milliseconds millisecond': ['time', 1],
  's sec secs second seconds': ['time', 1_000],
  'm min mins minute minutes': ['time', 60_000],
  'h hr hrs hour hours': ['time', 3_600_000],
  'd day days': ['time', 86_400_000],
  'b byte bytes': ['size', 1],
  'kb kilobyte kilobytes': ['size', 1_000],
  'mb megabyte megabytes': ['size', 1_000_000],
  'gb gigabyte gigabytes': ['size', 1_000_000_000],
  'kib kibibytes': ['size', 1_024],
  'mib mebibytes': ['size', 1_048_576],
  'gib gibibytes': ['size', 1_073_741_824],
  'hz hertz': ['frequency', 1],
  'khz kilohertz': ['frequency', 1_000],
  'mhz megahertz': ['frequency', 1_000_000],
  'bps bits': ['rate', 1],
  'kbps kilobits kbit kbits': ['rate', 1_000],
  'mbps megabits mbit mbits': ['rate', 1_000_000],
  'px pixel pixels': ['pixels', 1],
  'db decibel decibels': ['loudness', 1],
  fps: ['frames', 1],
  dpi: ['density', 1],
  'deg degrees': ['angle', 1],
  '% percent percentage pct': ['share', 0.01],
};

const units: ReadonlyMap<string, NumberUnit> = new Map(
  Object.entries(spellings).flatMap(([names, [dimension, size]]) =>
    names.split(' ').map((name): [string, NumberUnit] => [name, { dimension, size }]),
  ),
);

/** Dimensions whose numbers are written in one unit only, so that a number without one has it. */
const selfEvident: ReadonlySet<string> = new Set(['pixels', 'loudness', 'frames', 'density', 'angle']);

export function unitNamed(name: string): NumberUnit | undefined {
  return units.get(name) ?? units.get(name.toLowerCase());
}

/** Last words of a key's name that mean something else there: a minimum, a bit. */
const notInNames: ReadonlySet<string> = new Set(['m', 'min', 'b']);

/** A key's name without its last word, and the unit that this word is; undefined where it is none. */
export function splitUnit(name: string): { readonly base: string; readonly unit: NumberUnit } | undefined {
  const words = wordsOf(name);
  const last = words.at(-1) ?? '';
  const unit = notInNames.has(last) ? undefined : units.get(last);
  return unit === undefined || words.length < 2 ? undefined : { base: words.slice(0, -1).join(' '), unit };
}

/** The unit that a key's name or its description states: `timeout_ms`, "the time to wait, in seconds". */
export function unitOf(key: string, descriptions: readonly string[]): NumberUnit | undefined {
  const stated = descriptions.flatMap((text) => {
    const words = text
      .slice(0, 1_000)
      .toLowerCase()
      .matchAll(/\b(?:in|of) (\p{L}+)/gu);
    return [...words].flatMap(([, word = '']) => (word.length > 2 ? (units.get(word) ?? []) : []));
  });
  const [first] = stated;
  const isOne = stated.every((unit) => unit.size === first?.size && unit.dimension === first.dimension);
  return splitUnit(key)?.unit ?? (isOne ? first : undefined);
}

/** A number in another unit of the same dimension, without errors of binary fractions; undefined for another one. */
export function convert(value: number, from: NumberUnit, to: NumberUnit): number | undefined {
  if (from.dimension !== to.dimension) return undefined;
  return Number(((value * from.size) / to.size).toPrecision(12));
}

export function isSelfEvident({ dimension }: NumberUnit): boolean {
  return selfEvident.has(dimension);
}
