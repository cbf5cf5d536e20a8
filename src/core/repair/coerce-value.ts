/**
 * A value of the wrong type that says beyond doubt what it is: "5" for 5, one item for a list of it. A number with
 * a unit, a 1 for true or a list in a text is left alone.
 */
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import { type Broken, type Candidate, removeKey, replaceValue, show } from './candidate.ts';
import { valueAt } from './operation.ts';
import type { SchemaFinding } from './schema-finding.ts';
import { schemasAt } from './schema-walk.ts';

const longestScalar = 64;
const jsonNumber = /^[+-]?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
/** A point that may part thousands. */
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

/** A value of another type than its schema wants. */
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
  // Not the -0 of "-0", which JSON writes as 0.
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
