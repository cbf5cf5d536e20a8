/**
 * Mistakes by rule: each changes one place of a valid input, wherever it can be made, without regard to what a repair
 * can do about it. A mistake is implied when schema and input show what was meant.
 */
import type { Json } from '@capstan/core/contracts/primitives';
import { isList, isPlainObject } from '@capstan/core/json/values';
import type { Random } from '../shared/random.ts';
import { choicesIn } from './facts.ts';
import { isRequired, put, rename, typesAt, type ValidPlace } from './places.ts';

interface Mistake {
  readonly name: string;
  /** Undefined where it cannot be made. */
  readonly make: (place: ValidPlace) => Json | undefined;
  /** The right repair, where it is not the valid input. */
  readonly answer?: (place: ValidPlace) => Json;
  /** Inputs that are refused as well, or else it is another mistake here. */
  readonly refused?: (place: ValidPlace) => readonly Json[];
}

const letters = 'abcdefghijklmnopqrstuvwxyz';

/** A letter left out, doubled, swapped with the next or replaced. */
function misspell(text: string, random: Random): string {
  const at = random.below(text.length);
  const other = letters[random.below(letters.length)] ?? 'x';
  const [before, after] = [text.slice(0, at), text.slice(at + 1)];
  switch (random.below(4)) {
    case 0:
      return before + after;
    case 1:
      return before + text[at] + text[at] + after;
    case 2:
      return `${before}${after.slice(0, 1)}${text[at]}${after.slice(1)}`;
    default:
      return before + other + after;
  }
}

function recase(text: string, random: Random): string {
  const words = text
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .split(/[ _-]+/)
    .map((word) => word.toLowerCase());
  const tall = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);
  const forms = [
    words.join('_'),
    words.join('-'),
    words.map((word, at) => (at === 0 ? word : tall(word))).join(''),
    words.map(tall).join(''),
  ];
  return forms.filter((form) => form !== text)[random.below(3)] ?? text.toUpperCase();
}

function change(place: ValidPlace, value: Json | undefined): Json | undefined {
  return value === place.value ? undefined : put(place.input, place.path, value);
}

function isWord({ value, holder }: ValidPlace): boolean {
  return holder !== null && holder.key.length > 2 && !(typeof value === 'string' && value.includes('://'));
}

/** The key in the object around its own. */
function lift({ input, path, holder, value }: ValidPlace): Json | undefined {
  const above = path.slice(0, -2);
  const outer = above.reduce<Json>((now, key) => (now as Record<string | number, Json>)[key] ?? null, input);
  if (holder === null || path.length < 2 || !isPlainObject(outer) || Object.hasOwn(outer, holder.key))
    return undefined;
  return put(put(input, path, undefined), [...above, holder.key], value);
}

/** The key in an object beside it. */
function sink({ input, path, holder, value, random }: ValidPlace): Json | undefined {
  if (holder === null) return undefined;
  const beside = Object.entries(holder.object).filter(
    ([key, one]) => key !== holder.key && isPlainObject(one) && !Object.hasOwn(one, holder.key),
  );
  const [target] = beside[random.below(beside.length)] ?? [];
  return target === undefined
    ? undefined
    : put(put(input, path, undefined), [...path.slice(0, -1), target, holder.key], value);
}

function unitOf({ holder, parts }: ValidPlace): string | undefined {
  const text = parts
    .map(({ description }) => String(description ?? ''))
    .join(' ')
    .toLowerCase();
  const name = /(?:_|-|[a-z](?=[A-Z]))(ms|millis|seconds|secs|minutes)$/i
    .exec(holder?.key ?? '')?.[1]
    ?.toLowerCase();
  const stated = name ?? /\bin (milliseconds|seconds|minutes|ms)\b/.exec(text)?.[1];
  return stated === undefined
    ? undefined
    : stated.startsWith('ms') || stated.startsWith('milli')
      ? 'ms'
      : stated.startsWith('s')
        ? 's'
        : 'm';
}

function ifNumber(place: ValidPlace, write: (value: number) => Json | undefined): Json | undefined {
  const written = typeof place.value === 'number' ? write(place.value) : undefined;
  return written === undefined ? undefined : change(place, written);
}

function ifChoice(
  place: ValidPlace,
  write: (text: string, choices: readonly Json[]) => Json,
): Json | undefined {
  const choices = choicesIn(place.parts);
  return typeof place.value === 'string' && choices.length > 0 && place.value.length > 2
    ? change(place, write(place.value, choices))
    : undefined;
}

function standardOf({ parts }: ValidPlace): Json | undefined {
  return parts.map((part) => part.default).find((one) => one !== undefined);
}

function isSingle({ parts }: ValidPlace): boolean {
  const choices = new Set(parts.flatMap((part) => choicesIn([part])));
  return choices.size === 1;
}

export const implied: readonly Mistake[] = [
  {
    name: 'a key misspelt by a letter',
    make: (place) =>
      isWord(place) ? rename(place, misspell(place.holder?.key ?? '', place.random)) : undefined,
  },
  {
    name: 'a key in another case',
    make: (place) =>
      isWord(place) ? rename(place, recase(place.holder?.key ?? '', place.random)) : undefined,
  },
  { name: 'a key one level too high', make: lift },
  { name: 'a key one level too deep', make: sink },
  {
    name: 'one item without its list',
    make: (place) =>
      isList(place.value) && place.value.length === 1 ? change(place, place.value[0]) : undefined,
  },
  {
    name: 'a value in a list',
    make: (place) => (isList(place.value) ? undefined : change(place, [place.value])),
  },
  { name: 'a number as text', make: (place) => ifNumber(place, String) },
  {
    name: 'thousands as k',
    make: (place) => ifNumber(place, (n) => (n >= 1_000 && n % 100 === 0 ? `${n / 1_000}k` : undefined)),
  },
  {
    name: 'a number with its unit',
    make: (place) =>
      ifNumber(place, (n) => (unitOf(place) === undefined ? undefined : `${n}${unitOf(place)}`)),
  },
  {
    name: 'true or false in words',
    make: (place) => {
      if (typeof place.value !== 'boolean') return undefined;
      const words = place.value ? ['true', 'yes', 'on', 'True'] : ['false', 'no', 'off', 'False'];
      return change(place, words[place.random.below(4)]);
    },
  },
  {
    name: 'digits as a number',
    make: (place) =>
      typeof place.value === 'string' && /^[1-9]\d{0,9}$/.test(place.value) && !typesAt(place).has('number')
        ? change(place, Number(place.value))
        : undefined,
  },
  { name: 'a choice misspelt', make: (place) => ifChoice(place, (text) => misspell(text, place.random)) },
  {
    name: 'a choice in another case',
    make: (place) =>
      ifChoice(place, (text) => (text === text.toUpperCase() ? text.toLowerCase() : text.toUpperCase())),
  },
  {
    name: 'blanks around a text',
    make: (place) =>
      typeof place.value === 'string' && !place.value.includes('://')
        ? change(place, ` ${place.value}\n`)
        : undefined,
  },
  {
    name: 'another value for a constant',
    make: (place) =>
      isSingle(place) && isRequired(place) && typeof place.value !== 'object'
        ? change(place, 'other')
        : undefined,
  },
  {
    name: 'a constant left out',
    make: (place) => (isSingle(place) && isRequired(place) ? change(place, undefined) : undefined),
  },
  {
    name: 'a default left out',
    make: (place) =>
      isRequired(place) &&
      !isSingle(place) &&
      JSON.stringify(standardOf(place)) === JSON.stringify(place.value)
        ? change(place, undefined)
        : undefined,
  },
  {
    name: 'null for an absent key',
    make: (place) =>
      isRequired(place) || place.holder === null || isList(place.value) || isPlainObject(place.value)
        ? undefined
        : change(place, null),
    answer: ({ input, path }) => put(input, path, undefined),
  },
  {
    name: 'a date in another form',
    make: (place) => {
      const day =
        typeof place.value === 'string' && place.parts.some(({ format }) => String(format).startsWith('date'))
          ? /^(\d{4})-(\d\d)-(\d\d)(T.*)?$/.exec(place.value)
          : null;
      return day === null
        ? undefined
        : change(place, `${day[1]}/${day[2]}/${day[3]}${(day[4] ?? '').replace('T', ' ')}`);
    },
  },
  {
    name: 'a unit in the key',
    make: (place) => {
      const { holder, value } = place;
      const unit = unitOf(place);
      if (holder === null || typeof value !== 'number' || unit === undefined) return undefined;
      const base = holder.key.replace(/[_-]?(ms|millis|milliseconds|seconds|secs|minutes)$/i, '');
      const [name, written] =
        unit === 'ms' ? ['Seconds', value / 1_000] : ['Ms', value * (unit === 's' ? 1_000 : 60_000)];
      const renamed = rename(place, base + name);
      return renamed && put(renamed, [...place.path.slice(0, -1), base + name], written);
    },
  },
  {
    name: 'an item twice in a set',
    make: (place) =>
      isList(place.value) && place.value.length > 0
        ? change(place, [...place.value, place.value[0] ?? null])
        : undefined,
  },
];

/** No repair of these is known without their author; one that is applied and is not the valid input is wrong. */
export const open: readonly Mistake[] = [
  {
    name: 'a demanded key left out',
    make: (place) =>
      isRequired(place) && standardOf(place) === undefined && !isSingle(place)
        ? change(place, undefined)
        : undefined,
  },
  {
    name: 'another word for a choice',
    make: (place) => ifChoice(place, (_, choices) => (choices.length > 1 ? 'something' : place.value)),
  },
  {
    name: 'a number beyond a bound',
    make: (place) =>
      ifNumber(place, (n) => {
        const most = place.parts.map(({ maximum }) => maximum).find((one) => typeof one === 'number');
        const least = place.parts.map(({ minimum }) => minimum).find((one) => typeof one === 'number');
        return most !== undefined && most !== n
          ? most + 1
          : least !== undefined && least !== n
            ? least - 1
            : undefined;
      }),
  },
  {
    name: 'a key that says something',
    make: ({ value, input, path }) =>
      isPlainObject(value) ? put(input, [...path, 'lines'], 720) : undefined,
    refused: ({ input, path }) =>
      ['text', true, [], {}].map((value) => put(input, [...path, 'lines'], value)),
  },
  { name: 'a word for a number', make: (place) => ifNumber(place, () => 'many') },
  {
    name: 'an object for a scalar',
    make: (place) => (typeof place.value === 'object' ? undefined : change(place, { value: place.value })),
  },
  {
    name: 'two items for one',
    make: (place) => (typeof place.value === 'string' ? change(place, [place.value, 'other']) : undefined),
  },
];
