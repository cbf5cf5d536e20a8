import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../../src/contracts/primitives.ts';
import { withLocalReferences } from '../../src/schema-types/references.ts';
import { createSchemaCompiler } from '../../src/schemas/schema-compiler.ts';
import { reduceUnions } from '../../src/schemas/union-errors.ts';

const { compile } = createSchemaCompiler();
const text = { type: 'string' };
const number = { type: 'number' };

function form(properties: JsonObject, required: readonly string[] = Object.keys(properties)): JsonObject {
  return { type: 'object', properties, required, additionalProperties: false };
}

/** A form that counts how often its properties are looked at. */
function counted(properties: JsonObject, counter: { looks: number }): JsonObject {
  const get = (): JsonObject => {
    counter.looks += 1;
    return properties;
  };
  return Object.defineProperty({ type: 'object' }, 'properties', { get, enumerable: true });
}

function errorsOf(schema: JsonObject, value: Json): readonly string[] {
  return compile(schema)(value).map(({ pointer, message }) => `${pointer || '/'} ${message}`);
}

const file = form({ kind: { const: 'file' }, path: text });
const link = form({ kind: { enum: ['link'] }, url: text });
const source = { oneOf: [file, link] };
const tree: JsonObject = {
  $ref: '#/$defs/node',
  $defs: {
    node: { anyOf: [{ $ref: '#/$defs/leaf' }, { $ref: '#/$defs/fork' }] },
    leaf: form({ op: { const: 'leaf' }, size: number }),
    fork: form({ op: { const: 'fork' }, parts: { type: 'array', items: { $ref: '#/$defs/node' } } }),
  },
};

describe('the errors of a failed union', () => {
  it.each<[string, JsonObject, Json, readonly string[]]>([
    [
      'of the branch that the discriminator names',
      source,
      { kind: 'link', url: 3 },
      ['/url must be string, got 3'],
    ],
    [
      'of the discriminator, if its value is misspelt',
      source,
      { kind: 'flie', path: 'a' },
      ['/kind must be one of "file", "link", got "flie"; did you mean "file"?'],
    ],
    [
      'of the only branch for the type of the value',
      { anyOf: [{ type: 'string', minLength: 3 }, file] },
      'a',
      ['/ must NOT have fewer than 3 characters, got "a"'],
    ],
    [
      'of the branch with the most keys in common',
      { anyOf: [form({ a: text, b: text }), form({ c: text, d: text })] },
      { c: 'x', d: 1 },
      ['/d must be string, got 1'],
    ],
    [
      'of the branch meant at each level of a recursive union',
      tree,
      {
        op: 'fork',
        parts: [
          { op: 'leaf', size: 1 },
          { op: 'leaf', size: 'x' },
        ],
      },
      ['/parts/1/size must be number, got "x"'],
    ],
    [
      'as a list of the forms, if no branch is meant',
      { properties: { from: { anyOf: [text, file, link] } } },
      { from: 3 },
      ['/from must be one of: a string, an object with "kind": "file", an object with "kind": "link", got 3'],
    ],
    [
      'as a list of values, if all branches are values',
      { anyOf: [{ const: 'jpeg' }, { const: 'png' }] },
      'jpge',
      ['/ must be one of "jpeg", "png", got "jpge"; did you mean "jpeg"?'],
    ],
    [
      'as the two branches of a oneOf that match',
      { oneOf: [{ type: 'integer' }, text, number] },
      3,
      ['/ must match only one form, and matches both an integer and a number, got 3'],
    ],
    [
      'as the titles of the two branches that match',
      { oneOf: [{ title: 'Size', type: 'number' }, text, { title: 'Pages', type: 'number' }] },
      3,
      ['/ must match only one form, and matches both "Size" and "Pages", got 3'],
    ],
    [
      'as the numbers of two branches that match and read alike',
      { oneOf: [number, text, { type: 'number', minimum: 1 }] },
      3,
      ['/ must match only one form, and matches branches 1 and 3 of 3, got 3'],
    ],
    [
      'beside the errors of other fields',
      { ...form({ from: source, size: number }) },
      { from: { kind: 'file' }, size: 'x' },
      ['/from/path is required', '/size must be number, got "x"'],
    ],
  ])('are given %s', (_, schema, value, expected) => {
    expect(errorsOf(schema, value)).toEqual(expected);
  });

  it('are all kept for a repair', () => {
    const found = compile(source).find({ kind: 'link', url: 3 });
    expect(found.map(({ keyword }) => keyword)).toEqual(
      expect.arrayContaining(['const', 'oneOf', 'additionalProperties', 'type']),
    );
  });

  it('are found with work that grows with the branches and not with their square', () => {
    const count = 390; // near the most values that a schema may have
    const counter = { looks: 0 };
    const anyOf = Array.from({ length: count }, (_, at) => counted({ kind: { const: `k${at}` } }, counter));
    const check = compile({ type: 'array', items: { anyOf } });
    check([0]); // compiles the list of all errors, which looks at each branch
    counter.looks = 0;
    expect(check([1, 2, 3]).map(({ message }) => message)).toEqual(
      [1, 2, 3].map((seen) =>
        expect.stringMatching(new RegExp(`^must be one of: .* and 384 more, got ${seen}$`)),
      ),
    );
    expect(counter.looks).toBeLessThan(40 * count);
  });

  it('are one line when choosing a branch costs too much', () => {
    const counter = { looks: 0 };
    const anyOf = Array.from({ length: 3000 }, (_, at) => counted({ kind: { const: `k${at}` } }, counter));
    const schema = { properties: { from: { anyOf } } };
    const error = {
      keyword: 'anyOf',
      instancePath: '/from',
      schemaPath: '#/properties/from/anyOf',
      params: {},
      parentSchema: schema.properties.from,
      data: { kind: 'k2999', a: 1 },
    };
    const work = { left: 300 };
    const errors = Array.from({ length: 50 }, () => error);
    // The one look for addresses is remembered.
    withLocalReferences(schema);
    counter.looks = 0;
    const reduced = reduceUnions({ schema, value: { from: error.data }, errors }, work);
    expect([...new Set(reduced.map(({ message }) => message))]).toEqual(['must match one of 3000 forms']);
    expect(counter.looks).toBeLessThan(1000);
  });
});

it('suggests the allowed value for a misspelt one, and none for a value that is far from all', () => {
  expect(errorsOf({ enum: ['jpeg', 'png'] }, 'jpge')).toEqual([
    '/ must be one of "jpeg", "png", got "jpge"; did you mean "jpeg"?',
  ]);
  expect(errorsOf({ const: 'copy' }, 'cpoy')).toEqual(['/ must be "copy", got "cpoy"; did you mean "copy"?']);
  expect(errorsOf({ enum: ['jpeg', 'png'] }, 'bitmap')).toEqual([
    '/ must be one of "jpeg", "png", got "bitmap"',
  ]);
});
