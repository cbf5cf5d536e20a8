/** Random JSON Schemas, each with the values that it accepts. Lists have items wherever the schema allows any. */

import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import fc from 'fast-check';

export interface Schema {
  readonly schema: JsonObject;
  readonly value: fc.Arbitrary<Json>;
}

export const names = ['a', 'b', 'c'] as const;

const words = fc.constantFrom('x', 'y', '1', 'true', '');
const scalars: readonly Schema[] = [
  { schema: { type: 'string' }, value: words },
  { schema: { type: 'integer' }, value: fc.integer({ min: -3, max: 3 }) },
  { schema: { type: 'number' }, value: fc.constantFrom(0, 1, 1.5) },
  { schema: { type: 'boolean' }, value: fc.boolean() },
  { schema: { type: 'null' }, value: fc.constant(null) },
  { schema: { enum: ['x', 'y'] }, value: fc.constantFrom('x', 'y') },
  { schema: { const: 1 }, value: fc.constant(1) },
  { schema: { type: ['string', 'null'] }, value: fc.option(words) },
  { schema: { type: 'string', nullable: true }, value: fc.option(words) },
  {
    schema: {},
    value: fc.constantFrom<Json>(null, 1, 'x', true, [], ['x'], {}, { a: 1 }, { a: { b: 'x' } }),
  },
];

interface Field extends Schema {
  readonly name: string;
  readonly isRequired: boolean;
}

function objectOf(fields: readonly Field[], rest: 'closed' | 'open' | 'unevaluated'): Schema {
  const named = fields.map(({ name, schema }) => [name, schema] as const);
  const required = fields.filter(({ isRequired }) => isRequired).map(({ name }) => name);
  const closing: JsonObject =
    rest === 'closed'
      ? { additionalProperties: false }
      : rest === 'unevaluated'
        ? { unevaluatedProperties: false }
        : {};
  const model = Object.fromEntries(fields.map(({ name, value }) => [name, value]));
  return {
    schema: { type: 'object', properties: Object.fromEntries(named), required, ...closing },
    value: fc.record(model, { requiredKeys: required }) as fc.Arbitrary<Json>,
  };
}

function listOf({ schema, value }: Schema, least: number): Schema {
  return {
    schema: { type: 'array', items: schema, minItems: least },
    value: fc.array(value, { minLength: 1, maxLength: 2 }),
  };
}

function tupleOf(items: readonly Schema[]): Schema {
  return {
    schema: {
      type: 'array',
      prefixItems: items.map(({ schema }) => schema),
      items: false,
      minItems: items.length,
    },
    value: fc.tuple(...items.map(({ value }) => value)) as fc.Arbitrary<Json>,
  };
}

function anyOf(branches: readonly Schema[]): Schema {
  return {
    schema: { anyOf: branches.map(({ schema }) => schema) },
    value: fc.oneof(...branches.map(({ value }) => value)),
  };
}

function allOf({ schema, value }: Schema): Schema {
  return {
    schema: { allOf: [schema, { description: 'no more' }] },
    value,
  };
}

function objects(part: fc.Arbitrary<Schema>): fc.Arbitrary<Schema> {
  return fc
    .tuple(
      fc.uniqueArray(fc.record({ name: fc.constantFrom(...names), part, isRequired: fc.boolean() }), {
        maxLength: 3,
        selector: ({ name }) => name,
      }),
      fc.constantFrom<'closed' | 'open' | 'unevaluated'>('closed', 'open', 'unevaluated'),
    )
    .map(([fields, rest]) =>
      objectOf(
        fields.map(({ part: of, ...field }) => ({ ...field, ...of })),
        rest,
      ),
    );
}

const schemas = fc.letrec<{ any: Schema; object: Schema }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    fc.constantFrom(...scalars),
    tie('object'),
    fc.tuple(tie('any'), fc.integer({ min: 0, max: 1 })).map(([of, least]) => listOf(of, least)),
    fc.array(tie('any'), { minLength: 1, maxLength: 2 }).map(tupleOf),
    fc.array(tie('any'), { minLength: 1, maxLength: 2 }).map(anyOf),
    tie('any').map(allOf),
  ),
  object: objects(tie('any')),
}));

export const someSchema = schemas.any;
export const someObjectSchema = schemas.object;
