/** Mistakes whose cure is only known value by value, and so is learnt value by value. Each family has the same words. */
import type { Json } from '@capstan/core/contracts/primitives';
import { isOf, type Kind, type Level, ofField, pick } from './kind.ts';

interface Family {
  readonly capability: string;
  readonly at: string;
  readonly say?: (value: Json) => string;
  /** The right value for each wrong one, and who knows it. */
  readonly cures: Readonly<Record<string, readonly [right: Json, knownFrom: Level]>>;
}

/** One kind for each value. The capability takes the right value of any of them. */
function family({ cures, ...field }: Family): Kind[] {
  const known = Object.values(cures).map(([right]) => right);
  return Object.entries(cures).map(([wrong, [right, knownFrom]]) =>
    ofField({
      ...field,
      sort: 'value',
      name: `${field.at} ${wrong}`,
      knownFrom,
      takes: isOf(known),
      cure: `for ${field.at} ${wrong} write ${right}`,
      draw: () => [wrong, right],
    }),
  );
}

export const valueKinds: readonly Kind[] = [
  ...family({
    capability: 'trim',
    at: 'preset',
    say: (value) => `preset "${value}" is not known`,
    cures: {
      cinema: ['film_2160p', 2],
      phone: ['mobile_480p', 1],
      fast: ['draft_360p', 1],
      archive: ['master_prores', 3],
      social: ['square_1080p', 1],
      tv: ['broadcast_1080i', 2],
    },
  }),
  ...family({
    capability: 'caption',
    at: 'language',
    say: (value) => `language "${value}" is not known`,
    cures: { german: ['de', 1], french: ['fr', 1], spanish: ['es', 1], ITALIAN: ['it', 1] },
  }),
  ...family({
    capability: 'voice',
    at: 'style',
    say: (value) => `style "${value}" is not available`,
    cures: { happy: ['cheerful', 1], angry: ['firm', 2], news: ['newscast', 1], whispering: ['soft', 3] },
  }),
  ...family({
    capability: 'publish',
    at: 'category',
    say: (value) => `category "${value}" is not known`,
    cures: { Film: [1, 2], Music: [10, 2], Travel: [19, 4], Comedy: [23, 2] },
  }),
  ...family({
    capability: 'encode',
    at: 'container',
    cures: { mkv: ['matroska', 1], mov: ['quicktime', 1], ts: ['mpegts', 2] },
  }),
  ...family({
    capability: 'voice',
    at: 'rate',
    say: (value) => `sample rate "${value}" is not a number`,
    cures: { '44.1k': [44_100, 1], '48k': [48_000, 1] },
  }),
  // The number of the segment may be 2 as well, by coincidence.
  {
    name: 'too many channels',
    capability: 'publish',
    sort: 'value',
    knownFrom: 2,
    cure: 'two channels, whatever the segment',
    draw: (random) => {
      const segment = 1 + random.below(8);
      return {
        wrong: { channels: pick(random, [4, 6, 8]) },
        right: { channels: 2 },
        say: ({ channels }) => `segment ${segment} has ${channels} channels, which is not supported`,
        takes: ({ channels }) => Number.isInteger(channels) && ![4, 6, 8].includes(Number(channels)),
      };
    },
  },
];
