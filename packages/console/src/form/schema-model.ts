/** The field for a JSON Schema, and an initial value. Only the server decides on validity. */
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { findLostNumbers, readLostScalar } from '@capstan/core/json/numbers';
import { takesMedia } from './media-model.ts';

export type FieldKind = 'object' | 'array' | 'choice' | 'oneOf' | 'boolean' | 'number' | 'text' | 'json';

export interface FieldOption {
  readonly label: string;
  readonly schema: JsonObject;
}

export interface FormField {
  readonly kind: FieldKind;
  readonly schema: JsonObject;
  readonly options: readonly FieldOption[];
  readonly choices: readonly Json[];
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const deepestRef = 20;

/** Follows `#/…` references within the root. */
function resolveSchema(schema: JsonObject, root: JsonObject): JsonObject {
  let at: Json | undefined = schema;
  for (let depth = 0; depth < deepestRef && isObject(at) && typeof at.$ref === 'string'; depth++) {
    const names: string[] = at.$ref.replace(/^#\/?/, '').split('/').filter(Boolean);
    let target: Json | undefined = root;
    for (const name of names) {
      target = isObject(target) ? target[name.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined;
    }
    at = target;
  }
  return isObject(at) ? at : {};
}

function typeOf({ type, properties, items }: JsonObject): string | null {
  if (typeof type === 'string') return type;
  if (Array.isArray(type)) return (type.find((one: Json) => one !== 'null') as string | undefined) ?? null;
  if (properties !== undefined) return 'object';
  return items === undefined ? null : 'array';
}

const kinds: Readonly<Record<string, FieldKind>> = {
  object: 'object',
  array: 'array',
  boolean: 'boolean',
  number: 'number',
  integer: 'number',
  string: 'text',
};

export function toField(given: JsonObject, root: JsonObject): FormField {
  const schema = resolveSchema(given, root);
  const either = schema.oneOf ?? schema.anyOf;
  const nothing = { options: [], choices: [] };
  if (Array.isArray(schema.enum)) return { kind: 'choice', schema, options: [], choices: schema.enum };
  if (schema.const !== undefined) return { kind: 'choice', schema, options: [], choices: [schema.const] };
  if (Array.isArray(either)) {
    const options = toOptions(either.filter(isObject), root);
    return { kind: 'oneOf', schema, options, choices: [] };
  }
  const kind = kinds[typeOf(schema) ?? ''] ?? 'json';
  const isShapeless = kind === 'object' && !isObject(schema.properties);
  return { kind: isShapeless ? 'json' : kind, schema, ...nothing };
}

/** The values that differ between the forms of a union: `{ role: "user" }`. */
function fixedValues(schema: JsonObject, root: JsonObject): ReadonlyMap<string, Json> {
  const fixed = new Map<string, Json>();
  for (const [name, given] of Object.entries(isObject(schema.properties) ? schema.properties : {})) {
    const { kind, choices } = toField(isObject(given) ? given : {}, root);
    const [only] = choices;
    if (kind === 'choice' && choices.length === 1 && only !== undefined) fixed.set(name, only);
  }
  return fixed;
}

/** Named by title, by what is fixed in it, or by its type; equal names are numbered. */
function toOptions(either: readonly JsonObject[], root: JsonObject): readonly FieldOption[] {
  const options = either.map((one, index) => {
    const schema = resolveSchema(one, root);
    const fixed = [...fixedValues(schema, root).values()].map(String).join(', ');
    const own = fixed === '' ? (typeOf(schema) ?? `form ${index + 1}`) : fixed;
    return { schema, label: String(schema.title ?? own) };
  });
  return options.map(({ schema, label }, index) => {
    const isShared = options.some((other, at) => at !== index && other.label === label);
    return { schema, label: isShared ? `${label} ${index + 1}` : label };
  });
}

const typesOfKinds: Partial<Record<FieldKind, string>> = {
  object: 'object',
  array: 'array',
  boolean: 'boolean',
  number: 'number',
  text: 'string',
};

function kindOfValue(value: Json | undefined): string {
  if (Array.isArray(value)) return 'array';
  return value === null ? 'null' : typeof value;
}

function fitness(schema: JsonObject, root: JsonObject, value: Json | undefined): number {
  const { kind } = toField(schema, root);
  if (typesOfKinds[kind] !== kindOfValue(value)) return -1;
  if (!isObject(value)) return 0;
  const fixed = [...fixedValues(schema, root)];
  if (fixed.some(([name, one]) => value[name] !== undefined && value[name] !== one)) return -1;
  const known = propertiesOf(schema);
  const held = known.filter(({ name }) => value[name] !== undefined).length;
  const lacking = known.filter(({ name, isRequired }) => isRequired && value[name] === undefined).length;
  return held - lacking;
}

/** Which form of a union a value has; the first one if it has none. */
export function optionOf(options: readonly FieldOption[], root: JsonObject, value: Json | undefined): number {
  const fits = options.map(({ schema }) => fitness(schema, root, value));
  const best = Math.max(...fits);
  return best < 0 ? 0 : fits.indexOf(best);
}

export interface FormProperty {
  readonly name: string;
  readonly schema: JsonObject;
  readonly isRequired: boolean;
}

/** Required ones first, in the order of the schema. */
export function propertiesOf({ properties, required }: JsonObject): readonly FormProperty[] {
  const needed = new Set(Array.isArray(required) ? required : []);
  const all = Object.entries(isObject(properties) ? properties : {}).map(([name, schema]) => ({
    name,
    schema: isObject(schema) ? schema : {},
    isRequired: needed.has(name),
  }));
  return [...all.filter(({ isRequired }) => isRequired), ...all.filter(({ isRequired }) => !isRequired)];
}

/** The default, the first example, or the emptiest value of its type with the required fields. */
export function createValue(given: JsonObject, root: JsonObject): Json {
  const { kind, schema, options, choices } = toField(given, root);
  if (schema.default !== undefined) return schema.default;
  if (Array.isArray(schema.examples) && schema.examples[0] !== undefined) return schema.examples[0];
  switch (kind) {
    case 'object':
      return Object.fromEntries(
        propertiesOf(schema)
          .filter(({ isRequired }) => isRequired)
          .map(({ name, schema: inner }) => [name, createValue(inner, root)]),
      );
    case 'array':
      return createItems(schema, root);
    case 'choice':
      return choices[0] ?? null;
    case 'oneOf':
      return options[0] === undefined ? null : createValue(options[0].schema, root);
    case 'boolean':
      return false;
    case 'number':
      return typeof schema.minimum === 'number' ? schema.minimum : 0;
    case 'text':
      return '';
    case 'json':
      return typeOf(schema) === 'object' || typeOf(schema) === null ? {} : null;
  }
}

const textForms: Readonly<Record<string, string>> = {
  'date-time': '2026-01-01T00:00:00Z',
  date: '2026-01-01',
  email: 'name@example.com',
  uri: 'https://example.com/',
};

function exampleText(schema: JsonObject): string {
  if (takesMedia(schema)) return 'media://demo/file';
  const text = textForms[String(schema.format)] ?? 'text';
  return typeof schema.minLength === 'number' ? text.padEnd(schema.minLength, '-') : text;
}

/** A value for a trial run: like `createValue`, but no list and no text is empty. */
export function createExample(given: JsonObject, root: JsonObject): Json {
  const { kind, schema, options } = toField(given, root);
  const isGiven = schema.default !== undefined || Array.isArray(schema.examples);
  if (isGiven) return createValue(given, root);
  if (kind === 'text') return exampleText(schema);
  if (kind === 'oneOf' && options[0] !== undefined) return createExample(options[0].schema, root);
  if (kind === 'array' && isObject(schema.items)) {
    const count = Math.min(Math.max(1, Number(schema.minItems ?? 1)), mostItems);
    const { items } = schema;
    return Array.from({ length: count }, () => createExample(items, root));
  }
  if (kind !== 'object') return createValue(given, root);
  const wanted = propertiesOf(schema).filter((one) => one.isRequired || one.schema.default !== undefined);
  return Object.fromEntries(wanted.map(({ name, schema: inner }) => [name, createExample(inner, root)]));
}

/** Further items are added one by one. */
const mostItems = 10;

/** The minimum number of items. */
function createItems({ items, minItems }: JsonObject, root: JsonObject): Json[] {
  if (!isObject(items) || typeof minItems !== 'number') return [];
  return Array.from({ length: Math.min(minItems, mostItems) }, () => createValue(items, root));
}

/** A typed number; one that would change stays a text, which the schema refuses. */
export function readNumber(text: string): Json {
  const value = Number(text);
  return text === '' ? null : readLostScalar(value, text) === null ? value : text;
}

/** Parses typed JSON such as `{"a":1}`; undefined while it is invalid, or holds a number that would change. */
export function parseJson(text: string): Json | undefined {
  try {
    const value = JSON.parse(text) as Json;
    return findLostNumbers(text).length === 0 ? value : undefined;
  } catch {
    return undefined;
  }
}
