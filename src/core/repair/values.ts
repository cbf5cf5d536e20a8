/**
 * Repairs a value of the wrong type whose meaning is beyond doubt: "5" for 5, one item for a list of it. A number with
 * a unit, a 1 for true or a list in a text is left alone. A number beyond a bound, or between two steps, becomes the
 * nearest allowed one. That is sure only if it is close: 8,000 for a width of at most 7,680 means as wide as possible,
 * but 0 and -1 mean none, and 100 dB is not a gain.
 */
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import { valueAt } from '../json/patch.ts';
import {
  type Broken,
  type Candidate,
  removeKey,
  replaceValue,
  type SchemaFinding,
  show,
} from './candidate.ts';
import { findNearest } from './keys.ts';
import { schemasAt } from './schema-walk.ts';

const longestScalar = 64;
const jsonNumber = /^[+-]?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
/** A point that may separate thousands. */
const doubtfulPoint = /^[+-]?[1-9]\d{0,2}\.\d{3}$/;
/** A text that may hold several items, or a list written as text. */
const severalItems = /[,;|\n[\]{}]/;

export function coerceValue(broken: Broken, { pointer, params }: SchemaFinding): readonly Candidate[] {
  const value = valueAt(broken.input, pointer);
  if (pointer === '' || value === undefined) return [];
  if (value === null) {
    const description = `leave out ${pointer}, which is null`;
    return [removeKey(pointer, null, { description, isSure: true })];
  }
  const misfit = { schema: broken.schema, pointer, value };
  return [params.type].flat().flatMap((type) => coerceTo(type, misfit));
}

/** A value of another type than its schema requires. */
interface Misfit {
  readonly schema: JsonObject;
  readonly pointer: string;
  readonly value: Json;
}

function coerceTo(type: unknown, { schema, pointer, value }: Misfit): readonly Candidate[] {
  switch (type) {
    case 'number':
    case 'integer':
      return typeof value === 'string' ? readNumber(pointer, value, type) : [];
    case 'boolean':
      return typeof value === 'string' ? readBoolean(pointer, value) : [];
    case 'string':
      return Number.isSafeInteger(value)
        ? [coerced({ pointer, value }, String(value), `write ${show(value)} as text`)]
        : [];
    case 'array':
      return wrapItem(schema, pointer, value);
    default:
      return [];
  }
}

function coerced(
  { pointer, value: oldValue }: Pick<Misfit, 'pointer' | 'value'>,
  newValue: Json,
  description: string,
): Candidate {
  return replaceValue('coerce', { pointer, oldValue, newValue, description });
}

function readNumber(pointer: string, text: string, type: 'number' | 'integer'): readonly Candidate[] {
  const digits = text.trim();
  if (text.length > longestScalar || !jsonNumber.test(digits)) return [];
  const number = Number(digits);
  const isExact = Number.isInteger(number) ? Number.isSafeInteger(number) : type === 'number';
  if (!Number.isFinite(number) || !isExact) return [];
  const isSure = !doubtfulPoint.test(digits);
  // Avoids the -0 of "-0", which JSON writes as 0.
  const candidate = coerced({ pointer, value: text }, number + 0, `read ${show(text)} as a number`);
  return [{ ...candidate, isSure }];
}

function readBoolean(pointer: string, text: string): readonly Candidate[] {
  const word = text.length > longestScalar ? '' : text.trim().toLowerCase();
  if (word !== 'true' && word !== 'false') return [];
  return [coerced({ pointer, value: text }, word === 'true', `read ${show(text)} as ${word}`)];
}

function wrapItem(schema: JsonObject, pointer: string, value: Json): readonly Candidate[] {
  const saysItems = schemasAt(schema, pointer).some(
    ({ items, prefixItems }) => items !== undefined || prefixItems !== undefined,
  );
  const isOneItem = typeof value !== 'string' || (value.trim() !== '' && !severalItems.test(value));
  if (!saysItems || Array.isArray(value) || !isOneItem) return [];
  const candidate = replaceValue('wrap', {
    pointer,
    oldValue: value,
    newValue: [value],
    description: 'put the value into a list',
  });
  return [{ ...candidate, change: { pointer, oldValue: value, newValue: value } }];
}

/** The distance that counts as close, as a share of the allowed value. */
const closeShare = 0.25;

/** 0: any number. */
function stepAt({ schema }: Broken, pointer: string): number {
  const steps = schemasAt(schema, pointer).flatMap(({ type, multipleOf }) => [
    ...(type === 'integer' ? [1] : []),
    ...(typeof multipleOf === 'number' ? [multipleOf] : []),
  ]);
  return Math.max(0, ...steps);
}

/** The allowed number closest to a bound; none where there is always a closer one. */
function settle(limit: number, comparison: string, step: number): readonly number[] {
  const isExcluded = comparison === '>' || comparison === '<';
  if (step === 0) return isExcluded ? [] : [limit];
  const inwards = comparison.startsWith('>') ? 1 : -1;
  const steps = inwards === 1 ? Math.ceil(limit / step) : Math.floor(limit / step);
  return [(isExcluded && steps * step === limit ? steps + inwards : steps) * step];
}

/** Both neighbours in a tie. */
function roundTo(value: number, step: number): readonly number[] {
  const below = Math.floor(value / step) * step;
  const above = below + step;
  if (value - below === above - value) return [below, above];
  return [value - below < above - value ? below : above];
}

/**
 * Clamps a number beyond a bound, or between two steps, to the nearest allowed one. That is sure only if it is close:
 * 8,000 for a width of at most 7,680 means as wide as possible, but 0 and -1 mean none, and 100 dB is not a gain.
 */
export function clampNumber(broken: Broken, { pointer, params }: SchemaFinding): readonly Candidate[] {
  const value = valueAt(broken.input, pointer);
  if (pointer === '' || typeof value !== 'number') return [];
  const { limit, comparison, multipleOf } = params;
  const allowed =
    typeof multipleOf === 'number'
      ? roundTo(value, multipleOf)
      : settle(Number(limit), String(comparison), stepAt(broken, pointer));
  return allowed.filter(Number.isFinite).map((nearest) => {
    const isClose = Math.abs(value - nearest) <= closeShare * Math.abs(nearest);
    const description = `take ${nearest}, the nearest allowed, for ${value}`;
    return replaceValue('clamp', {
      pointer,
      oldValue: value,
      newValue: nearest + 0,
      description,
      isSure: isClose,
    });
  });
}

// Repairs a text that differs from an allowed one by white space, case, separators or a typing error.

const longestText = 256;

type Scalar = string | number | boolean;

function isScalar(value: unknown): value is Scalar {
  return typeof value === 'string' || typeof value === 'boolean' || Number.isSafeInteger(value);
}

function respell(pointer: string, value: Scalar, spelling: Json): Candidate {
  return replaceValue('respell', {
    pointer,
    oldValue: value,
    newValue: spelling,
    description: `spell ${show(value)} as ${show(spelling)}`,
  });
}

function readText({ input }: Broken, pointer: string): string | null {
  const value = valueAt(input, pointer);
  return pointer !== '' && typeof value === 'string' && value.length <= longestText ? value : null;
}

/** The closest of the allowed values, unless another is as close. */
export function chooseAllowed(broken: Broken, { pointer, params }: SchemaFinding): readonly Candidate[] {
  const value = valueAt(broken.input, pointer);
  if (pointer === '' || !isScalar(value) || String(value).length > longestText) return [];
  const allowed = [params.allowedValues ?? params.allowedValue].flat().filter(isScalar);
  const nearest = closest(value, allowed);
  const [only] = nearest;
  return nearest.length === 1 && only !== undefined ? [respell(pointer, value, only)] : [];
}

function closest(value: Scalar, allowed: readonly Scalar[]): readonly Scalar[] {
  const text = String(value).trim();
  const same = allowed.filter((one) => String(one) === text);
  if (same.length > 0 || typeof value !== 'string') return same;
  const texts = allowed.filter((one) => typeof one === 'string');
  const alike = texts.filter((one) => one.trim().toLowerCase() === text.toLowerCase());
  return alike.length > 0 ? alike : findNearest(text, texts);
}

/** Removes white space around the text, else changes its case. */
export function tidyFormat(broken: Broken, { pointer }: SchemaFinding): readonly Candidate[] {
  const text = readText(broken, pointer);
  if (text === null) return [];
  const spellings = new Set(text === text.trim() ? [text.toLowerCase(), text.toUpperCase()] : [text.trim()]);
  return [...spellings]
    .filter((spelling) => spelling !== text)
    .map((spelling) => respell(pointer, text, spelling));
}

/** Removes white space only: the meaning of a pattern is unknown. */
export function trimText(broken: Broken, { pointer }: SchemaFinding): readonly Candidate[] {
  const text = readText(broken, pointer);
  return text === null || text === text.trim() ? [] : [respell(pointer, text, text.trim())];
}
