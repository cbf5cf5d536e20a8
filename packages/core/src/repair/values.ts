/**
 * Repairs a value: of another type or shape than its schema allows, beyond a bound, or nearly one of the allowed. A
 * number beyond a bound is the author's to choose, so the nearest allowed one is only shown, unless the difference is
 * an error of rounding.
 */
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { canonicalJson, isList, isPlainObject } from '../json/values.ts';
import { type Candidate, type Certainty, removeKey, replaceValue, show } from './candidate.ts';
import { describe } from './keys.ts';
import { findNearest, looseDistance } from './names.ts';
import { readContainers, readDates, readNumbers, readTruths, type TextReading } from './readings.ts';
import { allowedIn, type InputPlace, isOfType, mayHold, requiredIn, typesIn } from './schema-walk.ts';

function toCandidates(place: InputPlace, readings: readonly TextReading[]): readonly Candidate[] {
  const { pointer, value } = place;
  return readings.map((reading) =>
    replaceValue('coerce', {
      way: reading.way,
      pointer,
      oldValue: value,
      newValue: reading.value,
      description: `read ${show(value)} as ${show(reading.value)}`,
      reason: reading.reason,
      evidence: reading.evidence,
    }),
  );
}

function typesAt({ schemas }: InputPlace): ReadonlySet<Json> {
  return new Set(schemas.flatMap(typesIn));
}

/** Another reading of the same value, of a type that the schema names. */
export function coerceValue(place: InputPlace): readonly Candidate[] {
  const { value, schemas, key } = place;
  const types = typesAt(place);
  if (typeof value !== 'string') return toCandidates(place, writeScalar(value, types));
  const hint = { key, descriptions: describe(schemas) };
  const wantsNumber = types.has('number') || types.has('integer');
  const numbers = wantsNumber ? readNumbers(value, hint) : [];
  return toCandidates(place, [
    ...numbers.filter((one) => types.has('number') || Number.isInteger(one.value)),
    ...(types.has('boolean') ? readTruths(value) : []),
    ...(types.has('array') || types.has('object') ? readContainers(value, types.has('array')) : []),
  ]);
}

function writeScalar(value: Json, types: ReadonlySet<Json>): readonly TextReading[] {
  if (typeof value === 'boolean' && types.has('string')) {
    return [
      { value: String(value), way: 'text', evidence: 'likely', reason: 'the schema wants a text there' },
    ];
  }
  if (typeof value !== 'number') return [];
  const isOnlyText = [...types].every((type) => type === 'string');
  const evidence: Certainty = isOnlyText && Number.isSafeInteger(value) ? 'certain' : 'likely';
  const asText = { value: String(value), way: 'text', evidence, reason: 'the schema wants a text there' };
  return [...(types.has('boolean') ? readTruths(value) : []), ...(types.has('string') ? [asText] : [])];
}

export function leaveOutNull(place: InputPlace): readonly Candidate[] {
  const { value, pointer, parent } = place;
  if (value !== null || parent === null || isList(parent.value)) return [];
  const reason = 'it is null and may be absent';
  return [removeKey(pointer, null, { way: 'null', reason, evidence: 'certain' })];
}

/** A text that may hold several items, or a list written as text. */
const severalItems = /[,;|\n[\]{}]/;

/** One item for a list of it. */
export function wrapItem(place: InputPlace): readonly Candidate[] {
  const { pointer, value, schemas } = place;
  if (!typesAt(place).has('array') || value === null || pointer === '') return [];
  const saysItems = schemas.some(
    ({ items, prefixItems }) => items !== undefined || prefixItems !== undefined,
  );
  const isEmpty = value === '' || (isPlainObject(value) && Object.keys(value).length === 0);
  const isOneItem = !isEmpty && !(typeof value === 'string' && severalItems.test(value));
  const isSure = saysItems && isOneItem && !mayHold(schemas, value);
  const description = 'put the value into a list';
  const reason = 'the schema wants a list there';
  const evidence = isSure ? 'certain' : 'guess';
  return [wrapped(place, [value], { way: 'list', description, reason, evidence })];
}

/** A list of one for its item. */
export function unwrapItem(place: InputPlace): readonly Candidate[] {
  const { pointer, value, schemas } = place;
  const item = isList(value) && value.length === 1 ? value[0] : undefined;
  if (item === undefined || pointer === '') return [];
  const description = 'take the only item';
  const reason = 'the schema wants no list there';
  const evidence = mayHold(schemas, value) ? 'likely' : 'certain';
  return [wrapped(place, item, { way: 'item', description, reason, evidence })];
}

type Wording = Pick<Parameters<typeof replaceValue>[1], 'way' | 'description' | 'reason' | 'evidence'>;

function wrapped({ pointer, value: oldValue }: InputPlace, newValue: Json, wording: Wording): Candidate {
  return replaceValue('wrap', { pointer, oldValue, newValue, ...wording, isSame: true });
}

const mostItems = 1_000;

/** Items that a set has twice. */
export function dropRepeated({ pointer, value, schemas }: InputPlace): readonly Candidate[] {
  if (!isList(value) || value.length > mostItems || !schemas.some((one) => one.uniqueItems === true))
    return [];
  const items = [...new Map(value.map((item) => [canonicalJson(item), item])).values()];
  if (items.length === value.length) return [];
  const description = 'keep each item once';
  const reason = 'the schema allows no item twice';
  const wording = { way: 'repeated', description, reason, evidence: 'certain' as const };
  return [replaceValue('drop', { pointer, oldValue: value, newValue: items, ...wording, isSame: true })];
}

/** The difference, as a share of the bound, that counts as an error of rounding. */
const roundingShare = 1e-9;

/** The number that a bound or a step allows nearest to one that it refuses. */
export function clampNumber({ pointer, value, schemas }: InputPlace): readonly Candidate[] {
  if (typeof value !== 'number' || pointer === '') return [];
  const step = Math.max(0, ...schemas.flatMap(stepsIn));
  const allowed = new Set([
    ...schemas.flatMap((schema) => boundsBeyond(schema, value, step)),
    ...(step > 0 && !Number.isInteger(value / step) ? roundTo(value, step) : []),
  ]);
  return [...allowed].filter(Number.isFinite).map((nearest) =>
    replaceValue('clamp', {
      way: nearest > value ? 'up' : 'down',
      pointer,
      oldValue: value,
      newValue: nearest + 0,
      description: `take ${nearest} for ${value}`,
      reason: 'it is the nearest allowed',
      evidence: Math.abs(value - nearest) <= roundingShare * Math.abs(nearest) ? 'certain' : 'guess',
    }),
  );
}

function stepsIn({ type, multipleOf }: JsonObject): readonly number[] {
  return [...(type === 'integer' ? [1] : []), ...(typeof multipleOf === 'number' ? [multipleOf] : [])];
}

/** The allowed number closest to a bound that the value is beyond; none where there is always a closer one. */
function boundsBeyond(schema: JsonObject, value: number, step: number): readonly number[] {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema;
  return [
    ...(typeof minimum === 'number' && value < minimum ? [settle(minimum, step, 1)] : []),
    ...(typeof maximum === 'number' && value > maximum ? [settle(maximum, step, -1)] : []),
    ...(typeof exclusiveMinimum === 'number' && value <= exclusiveMinimum && step > 0
      ? [Math.floor(exclusiveMinimum / step + 1) * step]
      : []),
    ...(typeof exclusiveMaximum === 'number' && value >= exclusiveMaximum && step > 0
      ? [Math.ceil(exclusiveMaximum / step - 1) * step]
      : []),
  ];
}

function settle(limit: number, step: number, inwards: 1 | -1): number {
  if (step === 0) return limit;
  return (inwards === 1 ? Math.ceil(limit / step) : Math.floor(limit / step)) * step;
}

/** Both neighbours in a tie. */
function roundTo(value: number, step: number): readonly number[] {
  const below = Math.floor(value / step) * step;
  const above = below + step;
  if (value - below === above - value) return [below, above];
  return [value - below < above - value ? below : above];
}

const longestText = 256;
const mostGuesses = 3;

type Scalar = string | number | boolean;

function isScalar(value: unknown): value is Scalar {
  return typeof value === 'string' || typeof value === 'boolean' || Number.isSafeInteger(value);
}

function respell(
  place: InputPlace,
  newValue: Json,
  { way, reason, evidence }: Omit<TextReading, 'value'>,
): Candidate {
  const { pointer, value: oldValue } = place;
  const description = `write ${show(newValue)} for ${show(oldValue)}`;
  return replaceValue('respell', { way, pointer, oldValue, newValue, description, reason, evidence });
}

/** The closest of the allowed values; the only one, whatever the value is. */
export function chooseAllowed(place: InputPlace): readonly Candidate[] {
  const { pointer, value, schemas } = place;
  if (pointer === '' || !isScalar(value) || String(value).length > longestText) return [];
  const allowed = [...new Set(allowedIn(schemas))].filter(isScalar);
  if (allowed.includes(value)) return [];
  const nearest = closest(value, allowed);
  const evidence = nearest.length === 1 ? 'certain' : 'likely';
  const reason = 'it is the nearest of the allowed values';
  if (nearest.length > 0)
    return nearest.map((one) => respell(place, one, { way: 'nearest', reason, evidence }));
  return [...chooseOnly(place, allowed), ...guessAllowed(place, allowed)];
}

function chooseOnly(place: InputPlace, allowed: readonly Scalar[]): readonly Candidate[] {
  const [only] = allowed;
  if (only === undefined || allowed.length > 1) return [];
  const isListed = (schema: JsonObject): boolean => schema.const !== undefined || schema.enum !== undefined;
  const isOpen = place.schemas.some(
    (one) => !isListed(one) && typesIn(one).some((type) => !isOfType(only, type)),
  );
  const isDemanded = requiredIn(place.parent?.schemas ?? []).includes(place.key);
  const reason = 'it is the only allowed value';
  const evidence = isOpen || !isDemanded ? 'guess' : 'certain';
  return [respell(place, only, { way: 'only', reason, evidence })];
}

function guessAllowed(place: InputPlace, allowed: readonly Scalar[]): readonly Candidate[] {
  const text = String(place.value);
  const texts = allowed.filter((one) => typeof one === 'string');
  const begun = texts.filter((one) => text.length > 2 && one.toLowerCase().startsWith(text.toLowerCase()));
  const near = begun.length > 0 ? begun : findNearest(text, texts, looseDistance);
  const reason = 'it is near to what is written';
  const reading = { way: 'near', reason, evidence: 'guess' } as const;
  return near.slice(0, mostGuesses).map((one) => respell(place, one, reading));
}

function closest(value: Scalar, allowed: readonly Scalar[]): readonly Scalar[] {
  const text = String(value).trim();
  const same = allowed.filter((one) => String(one) === text);
  if (same.length > 0 || typeof value !== 'string') return same;
  const texts = allowed.filter((one) => typeof one === 'string');
  const alike = texts.filter((one) => one.trim().toLowerCase() === text.toLowerCase());
  return alike.length > 0 ? alike : findNearest(text, texts);
}

/** A text that misses its format or pattern: white space around it, its case, its separators, a date's order. */
export function tidyText(place: InputPlace): readonly Candidate[] {
  const { value, schemas, pointer } = place;
  if (typeof value !== 'string' || value.length > longestText || pointer === '') return [];
  const formats = schemas.flatMap(({ format }) => (typeof format === 'string' ? [format] : []));
  const hasPattern = schemas.some(({ pattern }) => typeof pattern === 'string');
  if (formats.length === 0 && !hasPattern) return [];
  const dates = formats.filter((one) => one === 'date' || one === 'date-time');
  const spelling = (text: string, reading: Omit<TextReading, 'value'>): TextReading[] =>
    text === value ? [] : [{ value: text, ...reading }];
  const trimmed = value.trim();
  const inCase = {
    evidence: hasPattern ? 'likely' : 'certain',
    reason: 'the schema wants it in this case',
  } as const;
  const fits = { evidence: 'guess', reason: 'it fits the pattern so' } as const;
  const trims = {
    way: 'trim',
    evidence: 'certain',
    reason: 'white space around it is no part of it',
  } as const;
  const readings = [
    ...spelling(trimmed, trims),
    ...dates.flatMap((format) => readDates(value, format)),
    ...(trimmed === value ? spelling(value.toLowerCase(), { way: 'lower', ...inCase }) : []),
    ...(trimmed === value ? spelling(value.toUpperCase(), { way: 'upper', ...inCase }) : []),
    ...spelling(trimmed.replace(/[\s_]+/g, '-'), { way: 'hyphens', ...fits }),
    ...spelling(trimmed.replace(/[\s-]+/g, '_'), { way: 'underscores', ...fits }),
    ...spelling(trimmed.replace(/^v(?=\d)/i, ''), { way: 'without-v', ...fits }),
  ];
  return readings.map((reading) => respell(place, reading.value, reading));
}
