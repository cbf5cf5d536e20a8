/** Mistakes whose cure is one rule for every value: a conversion, a bound that the error names, a misspelt key. */
import {
  get,
  isEven,
  isNumber,
  isOf,
  isWhole,
  type Kind,
  type Level,
  odd,
  ofField,
  ofKey,
  pick,
  whole,
} from './kind.ts';

const rule = { sort: 'rule' } as const;
const names = ['anna', 'bruno', 'carla', 'dmitri', 'elena'];

function asText(capability: string, at: string, knownFrom: Level, values: readonly number[]): Kind {
  return ofField({
    ...rule,
    name: `${at} as text`,
    capability,
    at,
    knownFrom,
    cure: `write ${at} as a number, not as text`,
    draw: (random) => {
      const value = pick(random, values) + whole(random, 0, 400);
      return [String(value), value];
    },
    say: (value) => `${at} "${value}" is not a number`,
    takes: isNumber,
  });
}

function oddAt(name: string, capability: string, at: string, knownFrom: Level): Kind {
  return ofField({
    ...rule,
    name,
    capability,
    at,
    knownFrom,
    cure: `take the next even number below for ${at}`,
    draw: (random) => {
      const value = odd(random, 301, 3_001);
      return [value, value - 1];
    },
    say: (value) => `value ${value} must be even`,
    takes: isEven,
  });
}

function aboveBound(name: string, at: string, knownFrom: Level): Kind {
  return {
    ...rule,
    name,
    capability: 'trim',
    knownFrom,
    cure: `lower ${at} to the maximum of the profile`,
    draw: (random) => {
      const bound = 100 * whole(random, 20, 60);
      return {
        wrong: { [at]: bound + whole(random, 50, 3_000) },
        right: { [at]: bound },
        say: (input) => `value ${get(input, at)} is above the maximum ${bound} of this profile`,
        takes: (input) => Number(get(input, at)) <= bound,
      };
    },
  };
}

function misspelt(key: string, wrong: string, draw: () => string | number, capability = 'caption'): Kind {
  return ofKey({
    ...rule,
    name: `${wrong} for ${key}`,
    capability,
    key,
    misspelt: wrong,
    knownFrom: 1,
    cure: `the field is called ${key}`,
    draw,
  });
}

export const ruleKinds: readonly Kind[] = [
  asText('encode', 'bitrate', 1, [3_000, 4_000]),
  asText('encode', 'rate', 2, [8_000, 47_700]),
  asText('encode', 'height', 1, [480, 700]),
  asText('encode', 'fps', 2, [0.5, 24]),
  asText('trim', 'duration', 1, [30, 60.5]),
  asText('caption', 'line', 1, [2, 4]),
  ofField({
    ...rule,
    name: 'a flag as text',
    capability: 'encode',
    at: 'burn_in',
    knownFrom: 1,
    cure: 'burn_in is a boolean',
    draw: (random) => pick(random, [['true', true] as const, ['false', false] as const]),
  }),
  ofField({
    ...rule,
    name: 'codec in capitals',
    capability: 'encode',
    at: 'codec',
    knownFrom: 1,
    cure: 'codecs are written in lower case',
    draw: (random) => {
      const codec = pick(random, ['hevc', 'vp9', 'av1']);
      return [codec.toUpperCase(), codec];
    },
  }),
  ofField({
    ...rule,
    name: 'above the maximum of the schema',
    capability: 'encode',
    at: 'bitrate',
    knownFrom: 2,
    cure: 'lower bitrate to the maximum of the schema',
    draw: (random) => [whole(random, 50_001, 90_000), 50_000],
  }),
  misspelt('width', 'widht', () => 1_280, 'encode'),
  misspelt('bitrate', 'bitrrate', () => 4_000, 'encode'),
  ofField({
    ...rule,
    name: 'start with a fraction',
    capability: 'trim',
    at: 'start',
    knownFrom: 2,
    cure: 'drop the fraction of start',
    draw: (random) => {
      const value = whole(random, 1, 900);
      return [value + pick(random, [0.25, 0.5, 0.75]), value];
    },
    say: (value) => `frame ${value} must be a whole number`,
    takes: isWhole,
  }),
  oddAt('width is odd', 'trim', 'width', 2),
  oddAt('height is odd', 'trim', 'height', 1),
  oddAt('rate of audio is odd', 'voice', 'audio.rate', 3),
  aboveBound('bitrate above a bound', 'bitrate', 1),
  aboveBound('bitrate of audio above a bound', 'audio.bitrate', 2),
  ofField({
    ...rule,
    name: 'language in capitals',
    capability: 'caption',
    at: 'language',
    knownFrom: 1,
    cure: 'language codes are written in lower case',
    draw: (random) => {
      const code = pick(random, ['de', 'fr', 'es', 'it']);
      return [code.toUpperCase(), code];
    },
    say: (value) => `language "${value}" is not known`,
    takes: isOf(['de', 'fr', 'es', 'it', 'en']),
  }),
  misspelt('language', 'langauge', () => 'de'),
  misspelt('title', 'tittle', () => 'a title of its own'),
  misspelt('start', 'strat', () => 12),
  {
    ...rule,
    name: 'a voice that was replaced',
    capability: 'voice',
    knownFrom: 1,
    cure: 'take the successor that the error names',
    draw: (random) => {
      const [name, version] = [pick(random, names), whole(random, 1, 8)];
      const [old, successor] = [`${name}-${version}`, `${name}-${version + 1}`];
      return {
        wrong: { style: old },
        right: { style: successor },
        say: (input) => `voice "${input.style}" was removed, its successor is "${successor}"`,
        takes: ({ style }) => /^[a-z]+-\d$/.test(String(style)) && style !== old,
      };
    },
  },
  {
    ...rule,
    name: 'faster than allowed',
    capability: 'voice',
    knownFrom: 2,
    cure: 'lower speed to the limit of the voice',
    draw: (random) => {
      const limit = pick(random, [1.25, 1.5, 1.75]);
      return {
        wrong: { speed: limit + whole(random, 1, 8) / 8 },
        right: { speed: limit },
        say: ({ speed }) => `speed ${speed} is above the limit ${limit} of the voice`,
        takes: ({ speed }) => typeof speed === 'number' && speed <= limit,
      };
    },
  },
  ofField({
    ...rule,
    name: 'visibility in capitals',
    capability: 'publish',
    at: 'visibility',
    knownFrom: 1,
    cure: 'visibility is written in lower case',
    draw: (random) => {
      const word = pick(random, ['public', 'unlisted']);
      return [word.toUpperCase(), word];
    },
    say: (value) => `visibility "${value}" is not one of public, unlisted, private`,
    takes: isOf(['public', 'unlisted', 'private']),
  }),
  {
    ...rule,
    name: 'end before start',
    capability: 'publish',
    knownFrom: 3,
    cure: 'exchange start and end',
    draw: (random) => {
      const [low, high] = [whole(random, 100, 400), whole(random, 500, 999)];
      return {
        wrong: { start: high, end: low },
        right: { start: low, end: high },
        say: ({ start, end }) => `end ${end} lies before start ${start}`,
        takes: ({ start, end }) => Number(start) < Number(end),
      };
    },
  },
];
