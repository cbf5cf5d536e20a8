/** Mistakes without a template as cure: each time a model is needed, which a skill can instruct. */
import { isEven, isNumber, isWhole, type Kind, type Level, odd, ofField, pick, whole } from './kind.ts';

const advice = { sort: 'advice' } as const;

function durationAs(name: string, knownFrom: Level, write: (seconds: number) => string): Kind {
  return ofField({
    ...advice,
    name,
    capability: 'trim',
    at: 'duration',
    knownFrom,
    cure: `${name}: write duration as a number of seconds`,
    draw: (random) => {
      const seconds = whole(random, 61, 599);
      return [write(seconds), seconds];
    },
    say: (value) => `duration "${value}" is not a number`,
    takes: isNumber,
  });
}

const standardRates = [22_050, 44_100, 48_000, 96_000];

export const adviceKinds: readonly Kind[] = [
  durationAs('duration with a unit', 1, (seconds) => `${seconds}s`),
  durationAs('duration by the clock', 1, (seconds) => `${Math.floor(seconds / 60)}:${seconds % 60}`),
  ofField({
    ...advice,
    name: 'padding is odd',
    capability: 'trim',
    at: 'pad',
    knownFrom: 2,
    cure: 'take the next even number above for pad',
    draw: (random) => {
      const value = odd(random, 3, 601);
      return [value, value + 1];
    },
    say: (value) => `value ${value} must be even`,
    takes: isEven,
  }),
  ofField({
    ...advice,
    name: 'opacity in per cent',
    capability: 'caption',
    at: 'opacity',
    knownFrom: 1,
    cure: 'write opacity as a fraction of one',
    draw: (random) => {
      const percent = whole(random, 1, 99);
      return [`${percent}%`, percent / 100];
    },
    say: (value) => `opacity "${value}" is not a number`,
    takes: isNumber,
  }),
  ofField({
    ...advice,
    name: 'a date as it is spoken',
    capability: 'publish',
    at: 'date',
    knownFrom: 1,
    cure: 'write the date as year-month-day',
    draw: (random) => {
      const [day, month, year] = [whole(random, 10, 28), whole(random, 10, 12), whole(random, 2024, 2029)];
      return [`${day}.${month}.${year}`, `${year}-${month}-${day}`];
    },
    say: (value) => `date "${value}" is not an ISO date`,
    takes: (value) => /^\d{4}-\d\d-\d\d$/.test(String(value)),
  }),
  ofField({
    ...advice,
    name: 'aspect with an x',
    capability: 'caption',
    at: 'aspect',
    knownFrom: 1,
    cure: 'write the aspect with a colon',
    draw: (random) => {
      const [width, height] = [whole(random, 2, 40), whole(random, 2, 40)];
      return [`${width}x${height}`, `${width}:${height}`];
    },
    say: (value) => `aspect "${value}" is invalid`,
    takes: (value) => /^\d+:\d+$/.test(String(value)),
  }),
  // One beside a standard rate, rounding to even looks like the cure.
  ofField({
    ...advice,
    name: 'a rate beside the standard',
    capability: 'publish',
    at: 'rate',
    knownFrom: 2,
    cure: 'take the nearest standard rate',
    draw: (random) => {
      const rate = pick(random, standardRates);
      return [rate + pick(random, [-12, -1, 1, 1, 6]), rate];
    },
    say: (value) => `sample rate ${value} is not supported`,
    takes: (value) => isEven(value) && ![-12, 6].some((off) => standardRates.includes(Number(value) - off)),
  }),
  // Below one half, dropping the fraction looks like the cure.
  ofField({
    ...advice,
    name: 'end with a fraction',
    capability: 'publish',
    at: 'end',
    knownFrom: 2,
    cure: 'round end to the nearest whole number',
    draw: (random) => {
      const value = whole(random, 100, 900) + pick(random, [0.2, 0.4, 0.6, 0.8]);
      return [value, Math.round(value)];
    },
    say: (value) => `frame ${value} must be a whole number`,
    takes: isWhole,
  }),
  ofField({
    ...advice,
    name: 'title too long',
    capability: 'publish',
    at: 'title',
    knownFrom: 1,
    cure: 'cut the title after 40 characters',
    draw: (random) => {
      const title = Array.from({ length: 9 }, () => `word${whole(random, 100, 999)}`).join(' ');
      return [title, title.slice(0, 40)];
    },
    say: (value) => `title of ${String(value).length} characters is too long, at most 40 are allowed`,
    takes: (value) => String(value).length <= 40 && !String(value).startsWith('?'),
  }),
  ofField({
    ...advice,
    name: 'too loud',
    capability: 'voice',
    at: 'gain',
    knownFrom: 4,
    cure: 'bring gain to the level of broadcasting, -23',
    draw: (random) => [-whole(random, 10, 199) / 10, -23],
    say: (value) => `gain ${value} is too loud for broadcasting`,
    takes: (value) => typeof value === 'number' && value <= -20,
  }),
  // The same wrong total has another sum the next time.
  {
    ...advice,
    name: 'a total that is none',
    capability: 'caption',
    knownFrom: 2,
    cure: 'total is the sum of the parts',
    draw: (random) => {
      const parts = [whole(random, 1, 5), whole(random, 1, 5)] as const;
      const sum = parts[0] + parts[1];
      return {
        wrong: { parts, total: 11 + whole(random, 0, 3) },
        right: { parts, total: sum },
        say: ({ total }) => `total ${total} is not the sum of ${parts[0]} and ${parts[1]}`,
        takes: () => false,
      };
    },
  },
];
