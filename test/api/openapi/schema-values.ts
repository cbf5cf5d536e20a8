/** Values that a JSON Schema of our own document allows. A keyword that is unknown here is an error, not a guess. */
import fc from 'fast-check';
import { createResolve, type JsonSchema, type OpenApiDocument } from './document.ts';
import { mayHaveKeys } from './key-rules.ts';

type Values = fc.Arbitrary<unknown>;

/** The usual value of a field of this name, since random ones would not hit it. */
export type KnownFields = Readonly<Record<string, readonly unknown[]>>;

const understood = new Set([
  ...['$ref', 'type', 'enum', 'const', 'anyOf', 'oneOf', 'allOf', 'not', 'format', 'pattern'],
  ...['minLength', 'maxLength', 'minimum', 'maximum', 'exclusiveMinimum', 'items', 'minItems', 'maxItems'],
  ...['uniqueItems', 'properties', 'required', 'additionalProperties', 'propertyNames', 'minProperties'],
  ...['title', 'description', 'default', 'examples', 'id', 'if', 'then'],
]);

/** The rules about a value besides its type: made without them, and kept if they hold. */
const combining = ['not', 'allOf', 'anyOf', 'oneOf', 'if', 'minProperties'];

/** `fc.jsonValue` without names that no request may hold. */
const anyJson = fc
  .jsonValue({ maxDepth: 2, stringUnit: 'grapheme' })
  .filter((value) => !/__proto__|"prototype"|"constructor"/.test(JSON.stringify(value)));
const anyName = fc.stringMatching(/^[a-z][a-z_]{0,8}$/).filter((name) => name !== 'constructor');

/** `fc.webUrl` first maps every character of Unicode, for its paths. */
const anyUri = fc
  .tuple(
    fc.constantFrom('http', 'https'),
    fc.domain({ size: 'small' }),
    fc.array(fc.string({ unit: 'grapheme', maxLength: 8 }).map(encodeURIComponent), { maxLength: 3 }),
  )
  .map(([scheme, host, path]) => [`${scheme}://${host}`, ...path].join('/'));

const formats: Readonly<Record<string, Values>> = {
  'date-time': fc
    .date({ min: new Date('0001-01-02'), max: new Date('9999-12-30'), noInvalidDate: true })
    .map((date) => date.toISOString()),
  date: fc
    .date({ min: new Date('0001-01-02'), max: new Date('9999-12-30'), noInvalidDate: true })
    .map((date) => date.toISOString().slice(0, 10)),
  uri: anyUri,
  binary: fc.string({ maxLength: 200 }),
  regex: fc.constantFrom('^a+$', 'no such file', 'gain_db must be [0-9]+'),
};

export interface ValuesOptions {
  readonly document: OpenApiDocument;
  readonly known: KnownFields;
  /** Whether the schema allows the value. */
  readonly allows: (schema: JsonSchema, value: unknown) => boolean;
}

export function createSchemaValues({ document, known, allows }: ValuesOptions) {
  const deepest = 9;

  const resolve = createResolve(document);

  const arrayOf = (schema: JsonSchema, depth: number): Values => {
    const { minItems = 0, maxItems = 3 } = schema as { minItems?: number; maxItems?: number };
    const bounds = { minLength: minItems, maxLength: Math.max(minItems, Math.min(maxItems, 3)) };
    const item = valuesOf((schema.items ?? {}) as JsonSchema, depth + 1);
    return schema.uniqueItems === true
      ? fc.uniqueArray(item, { ...bounds, selector: (value) => JSON.stringify(value) })
      : fc.array(item, bounds);
  };

  const fieldOf = (name: string, schema: JsonSchema, depth: number): Values => {
    const made = valuesOf(schema, depth + 1);
    const values = (known[name] ?? []).filter((value) => allows(schema, value));
    if (values.length === 0) return made;
    return fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...values) }, { weight: 1, arbitrary: made });
  };

  const objectOf = (schema: JsonSchema, depth: number): Values => {
    const properties = (schema.properties ?? {}) as Record<string, JsonSchema>;
    const required = (schema.required ?? []) as string[];
    const isDeep = depth >= deepest;
    const kept = Object.entries(properties).filter(([name]) => !isDeep || required.includes(name));
    const fields = Object.fromEntries(kept.map(([name, part]) => [name, fieldOf(name, part, depth)]));
    const named = fc
      .subarray(Object.keys(fields).filter((name) => !required.includes(name)))
      .map((names) => [...required, ...names])
      .filter((names) => mayHaveKeys(schema, names))
      .chain((names) => fc.record(Object.fromEntries(names.map((name) => [name, fields[name] ?? anyJson]))));
    const more = schema.additionalProperties;
    if (more === false || (kept.length > 0 && more === undefined)) return named;
    const isSchema = typeof more === 'object' && more !== null;
    const value = isSchema ? valuesOf(more as JsonSchema, depth + 1) : anyJson;
    return fc
      .tuple(fc.dictionary(anyName, value, { maxKeys: 3, noNullPrototype: true }), named)
      .map(([others, own]) => ({ ...others, ...own }));
  };

  const ofType: Record<string, (schema: JsonSchema, depth: number) => Values> = {
    string: stringOf,
    integer: integerOf,
    number: numberOf,
    boolean: () => fc.boolean(),
    null: () => fc.constant(null),
    array: arrayOf,
    object: objectOf,
  };

  const madeAt: Map<JsonSchema, Values>[] = [];

  /** Parts that many operations name are made once for each depth. */
  const valuesOf = (sent: JsonSchema, depth: number): Values => {
    const schema = resolve(sent);
    const ofDepth = madeAt[depth] ?? new Map<JsonSchema, Values>();
    madeAt[depth] = ofDepth;
    const values = ofDepth.get(schema) ?? makeValues(schema, depth);
    ofDepth.set(schema, values);
    return values;
  };

  const makeValues = (schema: JsonSchema, depth: number): Values => {
    const strange = Object.keys(schema).filter((keyword) => !understood.has(keyword));
    if (strange.length > 0) throw new Error(`not understood: ${strange.join(', ')}`);
    if (schema.const !== undefined) return fc.constant(schema.const);
    if (schema.enum !== undefined) return fc.constantFrom(...(schema.enum as unknown[]));
    const branches = schema.anyOf as JsonSchema[] | undefined;
    if (branches !== undefined && schema.type === undefined)
      return fc.oneof(...branches.map((branch) => valuesOf(branch, depth)));
    if (schema.type === undefined) return anyJson;
    const made = [schema.type as string | string[]].flat().map((type) => {
      const make = ofType[type];
      if (make === undefined) throw new Error(`no values of type ${type}`);
      return make(schema, depth);
    });
    const values = fc.oneof(...made);
    return combining.some((keyword) => keyword in schema)
      ? values.filter((value) => allows(schema, value))
      : values;
  };

  return (schema: JsonSchema): Values => valuesOf(schema, 0);
}

function stringOf(schema: JsonSchema): Values {
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY } = schema as Record<string, number>;
  const isFit = (value: unknown): boolean => {
    const { length } = value as string;
    return length >= minLength && length <= maxLength;
  };
  const format = formats[schema.format as string];
  if (format !== undefined) return format.filter(isFit);
  if (schema.format !== undefined) throw new Error(`no values of format ${schema.format}`);
  if (schema.pattern !== undefined) {
    const pattern = new RegExp(schema.pattern as string, 'u');
    return fc.stringMatching(pattern).filter(isFit);
  }
  const least = Math.max(0, minLength);
  const short = fc.string({ unit: 'grapheme', minLength: least, maxLength: Math.min(maxLength, least + 30) });
  const longest = fc.constant('m'.repeat(maxLength <= 70_000 ? maxLength : least));
  return fc.oneof({ weight: 9, arbitrary: short.filter(isFit) }, { weight: 1, arbitrary: longest });
}

function integerOf(schema: JsonSchema): Values {
  const { minimum: min = -1_000_000, maximum: max = 1_000_000 } = schema as Record<string, number>;
  return fc.oneof(fc.integer({ min, max }), fc.constantFrom(min, max));
}

function numberOf(schema: JsonSchema): Values {
  const { minimum: min = -1e6, maximum: max = 1e6 } = schema as Record<string, number>;
  return fc.double({ min, max, noNaN: true, noDefaultInfinity: true }).map((value) => value + 0);
}
