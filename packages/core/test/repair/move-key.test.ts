import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Json, JsonObject } from '../../src/contracts/primitives.ts';
import { applyRepair, proposeRepairs } from '../../src/repair/propose-repairs.ts';
import { createSchemaCompiler } from '../../src/schemas/schema-compiler.ts';

const { compile } = createSchemaCompiler();

function repair(schema: JsonObject, input: Json) {
  return proposeRepairs({ schema, input, errorsOf: compileOnce(schema).find });
}

/** Objects that must have `size`, objects that do not know it, and the outermost one. */
function schemaOf(lacking: number, knowing: number, isOpen: boolean): JsonObject {
  const additionalProperties = isOpen;
  const lacks = {
    type: 'object',
    properties: { size: { type: 'integer' } },
    required: ['size'],
    additionalProperties,
  };
  const none = { type: 'object', properties: { name: { type: 'string' } }, additionalProperties };
  const of = (letter: string, count: number, schema: JsonObject) =>
    Array.from({ length: count }, (_, at) => [`${letter}${at}`, schema] as const);
  return {
    type: 'object',
    properties: Object.fromEntries([...of('lacks', lacking, lacks), ...of('none', knowing, none)]),
    additionalProperties: false,
  };
}

/** Compiling takes longer than what is tested: each schema once. */
const validators = new Map<string, ReturnType<typeof compile>>();
function compileOnce(schema: JsonObject) {
  const text = JSON.stringify(schema);
  const validator = validators.get(text) ?? compile(schema);
  validators.set(text, validator);
  return validator;
}

it('is moved where it is missing, if there is one such place and one that has it', () => {
  fc.assert(
    fc.property(
      fc.nat(3),
      fc.nat(3),
      fc.boolean(),
      fc.constantFrom<Json>(5, '5', null, {}),
      (lacking, strays, isOpen, size) => {
        const schema = schemaOf(lacking, strays, isOpen);
        const input: JsonObject = Object.fromEntries(
          Object.keys(schema.properties as JsonObject).map((key): [string, JsonObject] => [
            key,
            key.startsWith('none') ? { size } : {},
          ]),
        );
        const { applicable, proposals } = repair(schema, input);
        const moves = proposals.filter(({ kind }) => kind === 'move');
        expect(moves).toHaveLength(lacking === 1 && strays === 1 && size === 5 ? 1 : 0);
        if (moves.length === 0) return;
        expect(applicable).toMatchObject({ kind: 'move', pointer: '/none0/size' });
        expect(applyRepair(input, applicable?.operations ?? [])).toEqual({ lacks0: { size: 5 }, none0: {} });
      },
    ),
  );
});

it('keeps a reference as it is, into a list too', () => {
  const clip = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] };
  const schema = { type: 'object', properties: { clips: { type: 'array', items: clip } } };
  const input: JsonObject = { clips: [{ path: 'media://a/1' }, {}], path: 'media://a/2' };
  const { applicable } = repair(schema, input);
  expect(applyRepair(input, applicable?.operations ?? [])).toEqual({
    clips: [{ path: 'media://a/1' }, { path: 'media://a/2' }],
  });
});

it.each<[string, JsonObject, Json]>([
  [
    'the key is one of many of a kind there',
    { properties: { map: { additionalProperties: { type: 'integer' } }, box: { required: ['size'] } } },
    { map: { size: 5 }, box: {} },
  ],
  [
    'a pattern may mean it there',
    { properties: { map: { patternProperties: { '^s': {} } }, box: { required: ['size'] } } },
    { map: { size: 5 }, box: {} },
  ],
  [
    'it is known there',
    {
      properties: { a: { properties: { size: {} } }, box: { properties: { size: {} }, required: ['size'] } },
    },
    { a: { size: 5 }, box: {} },
  ],
  [
    'it would be an output path',
    {
      properties: {
        a: { properties: { b: {} } },
        box: { properties: { output_path: {} }, required: ['output_path'] },
      },
    },
    { a: { output_path: 'media://a/b' }, box: {} },
  ],
])('stays where it is when %s', (_, schema, input) => {
  expect(repair(schema, input).proposals.filter(({ kind }) => kind === 'move')).toEqual([]);
});
