/** A schema that is called simple is compiled without a thread around it: so it compiles, and soon. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { countProcessorMs } from '../../../../test/support/processor-time.ts';
import { runs } from '../../../../test/support/runs.ts';
import type { Json, JsonObject } from '../../src/contracts/primitives.ts';
import { findSchemaFault, isSimpleSchema } from '../../src/foreign-schema.ts';
import { createSchemaCompiler, findRefusal } from '../../src/schemas/schema-compiler.ts';

const compiler = createSchemaCompiler();

const names = fc.constantFrom('a', 'b', 'toString', '__proto__', "it's", '/', '');
const wild = fc.constantFrom<Json>('string', 'objekt', 7, 0.5, -1, true, null, [], ['a'], ['a', 'a'], {});
/** Mostly what the keyword takes. */
function mostly(arbitrary: fc.Arbitrary<Json>): fc.Arbitrary<Json> {
  return fc.oneof({ weight: 100, arbitrary }, { weight: 1, arbitrary: wild });
}
const { schema: schemas } = fc.letrec<{ schema: JsonObject }>((tie) => ({
  schema: fc.record(
    {
      type: mostly(fc.constantFrom('object', 'array', 'string', 'number', 'integer', 'boolean', 'null')),
      title: mostly(fc.constant('text')),
      properties: mostly(fc.dictionary(names, tie('schema'), { maxKeys: 2 })),
      required: mostly(fc.uniqueArray(names, { maxLength: 2 })),
      additionalProperties: mostly(fc.oneof(fc.boolean(), tie('schema'))),
      items: mostly(tie('schema')),
      minimum: mostly(fc.integer()),
      maxLength: mostly(fc.nat()),
    },
    { requiredKeys: [] },
  ),
}));

it('a simple schema compiles, whatever its keywords hold', () => {
  let simple = 0;
  fc.assert(
    fc.property(schemas, (schema) => {
      if (findSchemaFault(schema) !== null || !isSimpleSchema(schema)) return;
      simple++;
      expect(findRefusal(compiler, schema)).toBeNull();
    }),
    { numRuns: runs(150) },
  );
  expect(simple).toBeGreaterThan(0);
});

it.each<[string, JsonObject]>([
  ['a pattern', { pattern: '^a' }],
  ['a reference', { properties: { a: { $ref: '#' } } }],
  ['a union', { items: { anyOf: [{}] } }],
  ['another draft', { $schema: 'http://json-schema.org/draft-07/schema#' }],
  ['a type that is none', { type: 'objekt' }],
  ['a keyword of no draft', { toString: {} }],
])('a schema with %s is not simple', (_, schema) => {
  expect(isSimpleSchema(schema)).toBe(false);
});

it('the largest that is simple is compiled in a moment, and a larger one is not simple', () => {
  const ofSize = (count: number): JsonObject => ({
    properties: Object.fromEntries(
      Array.from({ length: count }, (_, at) => [`name${at}`, { type: 'string' }]),
    ),
  });
  const [largest, larger] = [ofSize(98), ofSize(99)];
  expect([isSimpleSchema(largest), isSimpleSchema(larger)]).toEqual([true, false]);
  compiler.compile(ofSize(1)); // loads the meta-schema
  const spentMs = countProcessorMs();
  compiler.compile(largest);
  expect(spentMs()).toBeLessThan(500);
});
