import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import type { Json, JsonObject } from '../../src/contracts/primitives.ts';
import { listNotEnforced, toEnforceable } from '../../src/schema-types/not-enforced.ts';
import { createSchemaCompiler } from '../../src/schemas/schema-compiler.ts';

const { compile } = createSchemaCompiler();
/** Valid in ECMA-262; the linear engine has no look-ahead. */
const noDot = '^(?!\\.)';

/** A condition as a schema; an object literal with the key `then` looks like a promise. */
function when(...parts: readonly [JsonObject, JsonObject, JsonObject]): JsonObject {
  return Object.fromEntries(parts.map((part, at) => [['if', 'then', 'else'][at], part]));
}

describe('a pattern that the linear engine cannot run', () => {
  it.each<[string, string]>([
    ['look-ahead', '^(?!x)'],
    ['look-behind', '(?<=a)b'],
    ['a back reference', '(a)\\1'],
    ['a named back reference', '(?<c>a)\\k<c>'],
    ['a count above the limit of the engine', '^a{1001}$'],
  ])('is accepted and refuses nothing: %s', (_, pattern) => {
    const check = compile({ type: 'string', pattern, maxLength: 3 });
    expect(check('x.b')).toEqual([]);
    expect(check('long')).toHaveLength(1);
  });

  it.each<[string, JsonObject, Json, Json]>([
    [
      'a key of patternProperties may have any value',
      { patternProperties: { [noDot]: { type: 'string' }, '^n': { type: 'number' } } },
      { a: 1, n: 1 },
      { n: 'x' },
    ],
    [
      'additionalProperties refuses no key beside it',
      {
        properties: { n: { type: 'number' } },
        patternProperties: { [noDot]: {} },
        additionalProperties: false,
      },
      { a: 1 },
      { n: 'x' },
    ],
    [
      'unevaluatedProperties refuses no key beside it',
      { type: 'object', allOf: [{ patternProperties: { [noDot]: {} } }], unevaluatedProperties: false },
      { a: 1 },
      1,
    ],
    ['propertyNames', { type: 'object', propertyNames: { pattern: noDot } }, { '.a': 1 }, 1],
    ['not', { type: 'string', not: { pattern: noDot } }, '.a', 1],
    [
      'not by way of a reference',
      { type: 'string', not: { $ref: '#/$defs/a' }, $defs: { a: { pattern: noDot } } },
      '.a',
      1,
    ],
    [
      'oneOf',
      {
        oneOf: [
          { type: 'string', pattern: noDot },
          { type: 'string', pattern: '^\\.' },
        ],
      },
      '.a',
      1,
    ],
    [
      'oneOf beside anyOf and allOf',
      {
        anyOf: [{ type: 'string' }],
        allOf: [{ maxLength: 2 }],
        oneOf: [{ pattern: noDot }, { pattern: '^\\.' }],
      },
      '.a',
      '.ab',
    ],
    [
      'if: a value that else accepts',
      when({ pattern: noDot }, { maxLength: 1 }, { maxLength: 2 }),
      '.a',
      '.ab',
    ],
    ['then of an exact if', when({ type: 'string' }, { pattern: noDot }, { type: 'null' }), '.a', 1],
    [
      'if, with the keys of then evaluated',
      {
        ...when(
          { properties: { k: { pattern: noDot } } },
          { properties: { a: {} } },
          { properties: { b: {} } },
        ),
        unevaluatedProperties: false,
      },
      { k: 'x', a: 1 },
      { c: 1 },
    ],
    ['maxContains', { contains: { pattern: noDot }, maxContains: 1 }, ['a', '.b'], []],
  ])('leaves no valid value refused, and the rest enforced: %s', (_, schema, valid, invalid) => {
    const check = compile(schema);
    expect(check(valid)).toEqual([]);
    expect(check(invalid)).not.toEqual([]);
  });

  it('applies to draft-07', () => {
    const $schema = 'http://json-schema.org/draft-07/schema#';
    const check = compile({ $schema, items: [{ pattern: noDot, type: 'string' }] });
    expect(check(['.a'])).toEqual([]);
    expect(check([1])).toHaveLength(1);
  });

  it.each(['(', '[z-a]', '(?<a>x)(?<a>y)', 'a**'])(
    'stays refused when it is no pattern at all: %s',
    (pattern) => {
      expect(() => compile({ pattern })).toThrow();
      expect(() => compile({ patternProperties: { [pattern]: { type: 'string' } } })).toThrow();
    },
  );

  it('refuses a reference into a keyword that it replaces, and follows one to $defs', () => {
    const first: JsonObject = { type: 'string', pattern: noDot };
    const a = { $ref: '#/oneOf/0' };
    expect(() => compile({ oneOf: [first, {}], properties: { a } })).toThrow('#/oneOf/0');
    const check = compile({ oneOf: [{ $ref: '#/$defs/f' }], $defs: { f: first } });
    expect(check('.a')).toEqual([]);
    expect(check(1)).not.toEqual([]);
  });

  it('never runs outside the linear engine', () => {
    const check = compile({ pattern: '^(?=a)(a+)+$', patternProperties: { '^(?=a)(a+)+$': false } });
    const hostile = `${'a'.repeat(50_000)}!`;
    expect(check(hostile)).toEqual([]);
    expect(check({ [hostile]: 1 })).toEqual([]);
  });
});

describe('listNotEnforced', () => {
  it('names each keyword, its position and the reason', () => {
    const schema: JsonObject = {
      properties: { 'a/b': { pattern: noDot }, c: { oneOf: [{ pattern: '^c' }, { pattern: noDot }] } },
      patternProperties: { [noDot]: {}, '^n': {} },
      not: { $ref: '#/properties/c' },
      default: { pattern: noDot },
      enum: [{ pattern: noDot }],
    };
    const found = listNotEnforced(schema);
    expect(found.map(({ pointer, keyword }) => [pointer, keyword])).toEqual([
      ['/properties/a~1b/pattern', 'pattern'],
      ['/properties/c/oneOf/1/pattern', 'pattern'],
      ['/properties/c/oneOf', 'oneOf'],
      [`/patternProperties/${noDot}`, 'patternProperties'],
      ['/not', 'not'],
    ]);
    expect(found[0]?.reason).toMatch(/^it cannot run in linear time: .*\(\?!/);
  });

  it('finds nothing, and changes nothing, where every pattern runs', () => {
    const schema: JsonObject = {
      not: { pattern: '^a' },
      properties: { pattern: { oneOf: [{}, { $ref: '#' }] } },
    };
    const { schema: same, notEnforced } = toEnforceable(schema);
    expect(same).toBe(schema);
    expect(notEnforced).toEqual([]);
  });
});

const leaf = fc.constantFrom<JsonObject>(
  { pattern: noDot },
  { pattern: '^a' },
  { type: 'string' },
  { properties: { a: { pattern: noDot } } },
  { patternProperties: { [noDot]: { type: 'string' } } },
  { properties: { b: {} }, additionalProperties: false },
  { $ref: '#/$defs/d' },
);
/** ajv counts the keys of an `if` that fails as evaluated, which JSON Schema does not. */
function hasCondition(...schemas: readonly JsonObject[]): boolean {
  return JSON.stringify(schemas).includes('"if":');
}
const { schema: anySchema } = fc.letrec<{ schema: JsonObject }>((tie) => {
  const inner = tie('schema');
  const pair = fc.tuple(inner, inner);
  return {
    schema: fc.oneof(
      { maxDepth: 3 },
      leaf,
      inner.map((not) => ({ not })),
      pair.map((oneOf) => ({ oneOf })),
      pair.map(([a, b]) => ({
        anyOf: [a, b],
        ...(hasCondition(a, b) ? {} : { unevaluatedProperties: false }),
      })),
      fc.tuple(inner, inner, inner).map((parts) => when(...parts)),
      inner.map((contains) => ({ contains, maxContains: 1 })),
      inner.map((a) => ({ properties: { a }, additionalProperties: { pattern: noDot } })),
    ),
  };
});
const anyText = fc.constantFrom('', 'a', '.a', 'b');
const anyValue = fc.oneof(
  anyText,
  fc.constant(1),
  fc.array(anyText, { maxLength: 3 }),
  fc.dictionary(anyText, fc.oneof(anyText, fc.array(anyText, { maxLength: 2 }))),
);

it('accepts every value that the schema accepts', () => {
  const native = new Ajv2020({ strict: false, logger: false, validateSchema: false, ownProperties: true });
  fc.assert(
    fc.property(anySchema, fc.array(anyValue, { minLength: 1, maxLength: 20 }), (inner, values) => {
      const schema: JsonObject = { allOf: [inner], $defs: { d: { pattern: noDot } } };
      const isValid = native.compile(schema);
      const valid = values.filter((value) => isValid(value));
      native.removeSchema();
      fc.pre(valid.length > 0);
      const check = compile(schema);
      expect(valid.flatMap((value) => check(value))).toEqual([]);
    }),
    { numRuns: runs(60) },
  );
});
