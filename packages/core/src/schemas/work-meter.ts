/**
 * Bounds the cost of one check, for any schema and value. Every schema that applies to a value charges an estimate of
 * its work, and a check that has spent its budget ends with `TooMuchWork`. The meter counts work and not time, so that
 * a value gets the same verdict on a busy machine. One unit is about 5 ns.
 */
import {
  _,
  type Ajv,
  type AnySchemaObject,
  type KeywordCxt,
  type Name,
  type SchemaValidateFunction,
} from 'ajv';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { canonicalJson } from '../json/values.ts';

export class TooMuchWork extends Error {
  override readonly name = 'TooMuchWork';
}

export interface WorkMeter {
  /** Begins a check. */
  reset(budget: number): void;
  /** @throws TooMuchWork */
  spend(units: number): void;
  /** The rest of the budget; negative if it was exceeded. */
  left(): number;
}

export function createWorkMeter(): WorkMeter {
  let left = 0;
  return {
    reset: (budget) => {
      left = budget;
    },
    spend: (units) => {
      left -= units;
      if (left < 0) throw new TooMuchWork();
    },
    left: () => left,
  };
}

const units = {
  /** For every schema that applies to a value. */
  schema: 5,
  keyword: 3,
  /** For anyOf, oneOf and references: a failure there creates an error object. */
  branch: 120,
  division: 20,
  /** For each value in an enum or const, where values are compared part by part. */
  compared: 20,
  /** For each value in an item of `uniqueItems`, and for each character of its canonical text. */
  uniqueValue: 60,
  uniqueCharacter: 4,
  key: 4,
  character: 8,
  /** For the format `regex`, which compiles the text as a pattern. */
  patternCharacter: 80,
  /** For each name that a branch marks as evaluated. */
  evaluatedName: 40,
} as const;

/** Makes every schema that this ajv compiles charge the meter before its keywords run. */
export function meterSchemas(ajv: Ajv, meter: WorkMeter, root: JsonObject): void {
  const keyword = 'capstan-work';
  const charges = createCharges(meter);
  const evaluatedNames = ajv.opts.unevaluated === true ? countMostKeys(root) : 0;
  const code = ({ gen, data, it: { schema } }: KeywordCxt): void => {
    const call = (charge: unknown, argument: Name | number): void => {
      gen.code(_`${gen.scopeValue('func', { ref: charge })}(${argument})`);
    };
    call(meter.spend, ownUnits(schema, evaluatedNames));
    if (schema.format === 'regex') call(charges.pattern, data);
    else if (has(schema, textKeywords)) call(charges.text, data);
    if (has(schema, keyKeywords)) call(charges.keys, data);
  };
  // Does not use `addKeyword`: the rule comes before all others, and applies to schemas that do not name it.
  const implemented = Object.keys(ajv.RULES.all);
  const definition = {
    keyword,
    code,
    type: [],
    schemaType: [],
    allowUndefined: true,
    implements: implemented,
  };
  ajv.RULES.rules.unshift({ rules: [{ keyword, definition }] });
}

function createCharges({ spend }: WorkMeter) {
  return {
    text: (value: Json): void => {
      if (typeof value === 'string') spend(units.character * value.length);
    },
    pattern: (value: Json): void => {
      if (typeof value === 'string') spend(units.patternCharacter * value.length);
    },
    keys: (value: Json): void => {
      if (typeof value === 'object' && value !== null) spend(units.key * Object.keys(value).length);
    },
  };
}

const textKeywords = ['format', 'minLength', 'maxLength'] as const;
const keyKeywords = [
  'additionalProperties',
  'patternProperties',
  'propertyNames',
  'unevaluatedProperties',
] as const;

function has(schema: AnySchemaObject, keywords: readonly string[]): boolean {
  return keywords.some((keyword) => schema[keyword] !== undefined);
}

/** The cost of the schema itself; schemas inside it charge on their own. */
function ownUnits(schema: AnySchemaObject, evaluatedNames: number): number {
  const { anyOf = [], oneOf = [], allOf = [], $ref, $dynamicRef, multipleOf } = schema;
  const references = [$ref, $dynamicRef].filter((ref) => ref !== undefined).length;
  const failing = anyOf.length + oneOf.length + references;
  const entries = Object.values(schema).map((value) =>
    typeof value === 'object' && value !== null ? 1 + Object.keys(value).length : 1,
  );
  return (
    units.schema +
    units.keyword * entries.reduce((sum, count) => sum + count, 0) +
    units.branch * failing +
    units.division * (multipleOf === undefined ? 0 : 1) +
    units.compared * countCompared(schema) +
    units.evaluatedName * evaluatedNames * (failing + allOf.length + 1)
  );
}

/** Few texts and numbers are compared in one step; otherwise ajv compares part by part. */
function countCompared({ enum: allowed = [], const: constant }: AnySchemaObject): number {
  const isWhole = allowed.length >= 200 || allowed.some((value: Json) => typeof value === 'object');
  return (isWhole ? sizeOf(allowed) : 0) + (constant === undefined ? 0 : sizeOf(constant));
}

function countMostKeys(value: Json): number {
  if (typeof value !== 'object' || value === null) return 0;
  const children = Object.values(value);
  return children.reduce<number>((most, child) => Math.max(most, countMostKeys(child)), children.length);
}

/** Number of values in a value, including itself; long texts count more. */
function sizeOf(value: Json): number {
  if (typeof value === 'string') return 1 + (value.length >> 6);
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce<number>((sum, child) => sum + sizeOf(child), 1);
}

/** Replaces the keyword: ajv compares every two items, this one the canonical text of each, in linear time. */
export function compareInLinearTime(ajv: Ajv, { spend }: WorkMeter): void {
  const keyword = 'uniqueItems';
  const charge = (value: Json): void => {
    spend(units.uniqueValue);
    if (typeof value === 'string') spend(units.uniqueCharacter * value.length);
    else if (Array.isArray(value)) value.forEach(charge);
    else if (typeof value === 'object' && value !== null) {
      for (const [key, child] of Object.entries(value)) {
        spend(units.uniqueValue + units.uniqueCharacter * key.length);
        charge(child);
      }
    }
  };
  const validate: SchemaValidateFunction = (isWanted: boolean, items: readonly Json[]) => {
    if (!isWanted) return true;
    const places = new Map<string, number>();
    for (const [i, item] of items.entries()) {
      charge(item);
      const text = canonicalJson(item);
      const j = places.get(text);
      if (j !== undefined) {
        const message = `must NOT have duplicate items (items ## ${j} and ${i} are identical)`;
        validate.errors = [{ keyword, message, params: { i, j } }];
        return false;
      }
      places.set(text, i);
    }
    return true;
  };
  ajv.removeKeyword(keyword);
  ajv.addKeyword({ keyword, type: 'array', schemaType: 'boolean', validate });
}
