/** Facts for completion and hover: the live capabilities, the keys of a definition, and the last readable text. */

import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { DefinitionKeys } from '@capstan/core/definitions/findings';
import { isMap, isScalar, isSeq, parseDocument, type YAMLMap } from 'yaml';
import { propertiesOf, toField } from '../form/schema-model.ts';
import { formatUsd } from '../shared/format.ts';
import type { LiveSpec, LiveSpecs } from '../worker/messages.ts';

/** The outline of a text, valid or not. */
export interface Outline {
  /** Step ids with their capability. */
  readonly steps: Readonly<Record<string, string | undefined>>;
  readonly job: JsonObject;
}

export const emptyOutline: Outline = { steps: {}, job: {} };

export interface EditorFacts extends Outline {
  readonly specs: LiveSpecs;
  readonly keys: DefinitionKeys;
}

function textOf(map: YAMLMap, key: string): string | undefined {
  const value = map.get(key, true);
  return isScalar(value) && typeof value.value === 'string' ? value.value : undefined;
}

/** @returns the outline of a text that is readable YAML, whatever its faults; `former` while it is unreadable */
export function readOutline(text: string, former: Outline): Outline {
  const document = parseDocument(text, { logLevel: 'silent' });
  if (document.errors.length > 0 || !isMap(document.contents)) return former;
  const steps = document.contents.get('steps', true);
  const items = isSeq(steps) ? steps.items.filter(isMap) : [];
  const named = items.flatMap((step) => {
    const id = textOf(step, 'id');
    return id === undefined ? [] : [[id, textOf(step, 'capability')] as const];
  });
  const schema = document.contents.get('job_schema', true);
  return {
    steps: Object.fromEntries(named),
    job: isMap(schema) ? (schema.toJS(document) as JsonObject) : {},
  };
}

export interface SchemaField {
  readonly name: string;
  /** `number, required` */
  readonly type: string;
  readonly about: string;
}

/** The possible forms of a value: each form of `oneOf`. */
function shapesOf(given: JsonObject, root: JsonObject): JsonObject[] {
  const { kind, schema, options } = toField(given, root);
  return kind === 'oneOf' ? options.flatMap((option) => shapesOf(option.schema, root)) : [schema];
}

function stepInto(shape: JsonObject, root: JsonObject, name: string): JsonObject[] {
  const properties = (shape.properties ?? {}) as JsonObject;
  const next = name === '[]' ? shape.items : properties[name];
  return typeof next === 'object' && next !== null ? shapesOf(next as JsonObject, root) : [];
}

function describeType(given: JsonObject, root: JsonObject): string {
  const { kind, schema, choices, options } = toField(given, root);
  switch (kind) {
    case 'choice':
      return choices.map((choice) => JSON.stringify(choice)).join(' or ');
    case 'oneOf':
      return options.map(({ label }) => label).join(' or ');
    case 'array': {
      const { items } = schema;
      return typeof items === 'object' && items !== null
        ? `list of ${describeType(items as JsonObject, root)}`
        : 'list';
    }
    case 'json':
      return 'any value';
    default:
      return typeof schema.type === 'string' ? schema.type : kind;
  }
}

function aboutOf(given: JsonObject, root: JsonObject): string {
  const { schema } = toField(given, root);
  return String(given.description ?? schema.description ?? schema.title ?? '');
}

/** The fields at a path within a schema, each once. */
export function fieldsAt(root: JsonObject, path: readonly string[]): readonly SchemaField[] {
  let shapes = shapesOf(root, root);
  for (const name of path) shapes = shapes.flatMap((shape) => stepInto(shape, root, name));
  const fields = shapes.flatMap(propertiesOf).map(({ name, schema, isRequired }) => ({
    name,
    type: `${describeType(schema, root)}${isRequired ? ', required' : ''}`,
    about: aboutOf(schema, root),
  }));
  return [...new Map(fields.map((field) => [field.name, field])).values()];
}

/** `free`, or `$0.002 a call`: the price of the cheapest instance. */
export function describeOffer({ instances }: LiveSpec): string {
  const prices = instances.flatMap(({ cost_model }) => (cost_model === undefined ? [] : [cost_model]));
  const [cheapest] = prices.toSorted((a, b) => a.rate_usd - b.rate_usd);
  if (cheapest === undefined) return instances.length === 0 ? 'no instance' : 'free';
  const { type, rate_usd } = cheapest;
  if (type === 'free' || rate_usd === 0) return 'free';
  return `${formatUsd(rate_usd)} a ${type === 'per_call' ? 'call' : 'second'}`;
}
