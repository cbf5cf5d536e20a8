import { describe, expect, it } from 'vitest';
import { isLong } from '../../../../test/support/long.ts';
import { countProcessorMs } from '../../../../test/support/processor-time.ts';
import type { Json, JsonObject } from '../../src/contracts/primitives.ts';
import { createSchemaCompiler, verdictBudget } from '../../src/schemas/schema-compiler.ts';

/** Sizes and the work allowed for them are a tenth of the real ones, unless the test is long. */
const part = isLong ? 1 : 0.1;
const { compile } = createSchemaCompiler(verdictBudget * part);
function list<Item>(length: number, item: (at: number) => Item): Item[] {
  return Array.from({ length }, (_, at) => item(at));
}
/** Only that part of the length. */
function many<Item>(length: number, item: (at: number) => Item): Item[] {
  return list(length * part, item);
}
function inside(levels: number): Json {
  return levels === 0 ? 1 : { a: inside(levels - 1) };
}
const mebibyte = 1_048_576;
const noise = `c${many(mebibyte, (at) => 'ab'[(at * at + (at >> 3)) % 2]).join('')}`;
/** Definitions that each go into `a` twice. */
const doubling: JsonObject = {
  $ref: '#/$defs/d0',
  $defs: Object.fromEntries(
    list(40, (at) => {
      const next = { properties: { a: { $ref: `#/$defs/d${at + 1}` } } };
      return [`d${at}`, (at < 39 ? { anyOf: [next, next] } : { type: 'string' }) as JsonObject];
    }),
  ),
};

/** Each of two branches leads back to both. */
function twice(keyword: string, type: Json): JsonObject {
  const branch = { properties: { a: { $ref: '#' } }, type };
  return { [keyword]: [branch, branch] };
}
/** Definitions that each apply twice to the same value. */
const doublingInPlace: JsonObject = {
  $ref: '#/$defs/d0',
  $defs: Object.fromEntries(
    list(40, (at) => {
      const next = { $ref: `#/$defs/d${at + 1}` };
      return [`d${at}`, (at < 39 ? { anyOf: [next, next] } : { type: 'string' }) as JsonObject];
    }),
  ),
};

const tooMuch = 'is too much work to check against the schema; it must be smaller';

describe('a check', () => {
  it.each<[string, JsonObject, Json, said?: string]>([
    ['references that double with the depth', doubling, inside(60), tooMuch],
    ['branches that double with the depth', twice('anyOf', 'object'), inside(60), tooMuch],
    ['branches that all apply', twice('allOf', ['object', 'number']), inside(60), tooMuch],
    ['references that double in place', doublingInPlace, 1, tooMuch],
    [
      'two keywords for one field',
      { properties: { a: { $ref: '#' } }, patternProperties: { a: { $ref: '#' } } },
      inside(60),
    ],
    [
      'many branches for many items',
      { items: { anyOf: many(600, () => ({ type: 'string' })) } },
      [...many(100_000, () => ''), 1],
    ],
    ['many branches that measure a long text', { anyOf: many(500, (at) => ({ maxLength: at })) }, noise],
    ['many branches of a format', { anyOf: many(300, () => ({ format: 'regex' })) }, `${noise}(`],
    ['a pattern of many states', { pattern: '[ab]*a[ab]{900}c' }, noise],
    [
      'many patterns',
      { items: { anyOf: many(300, (at) => ({ pattern: `[ab]*a[ab]{9}c${at}` })) } },
      many(1_000, () => noise.slice(0, 1_000)),
    ],
    [
      'branches that compare many items',
      { anyOf: many(300, () => ({ uniqueItems: true, maxItems: 1 })) },
      many(100_000, (at) => ({ z: [1], at })),
    ],
    [
      'merged branches',
      {
        items: {
          anyOf: list(100, (at) => ({ properties: { [`k${at}`]: {} } })),
          unevaluatedProperties: false,
        },
      },
      many(100_000, () => ({ k1: 1 })),
    ],
  ])('ends within seconds on any value, with the reason: %s', (_, schema, value, said) => {
    const check = compile(schema);
    const spentMs = countProcessorMs();
    const errors = check(value);
    expect(spentMs()).toBeLessThan(20_000 * part);
    expect(errors[0]).toEqual({ pointer: expect.any(String), message: expect.any(String) });
    if (said !== undefined) expect(errors).toEqual([{ pointer: '', message: said }]);
  });

  it.each<[string, JsonObject, Json]>([
    ['16 MiB of numbers', { type: 'array', items: { type: 'number' } }, many(8_000_000, () => 1)],
    [
      '2,000,000 points',
      { items: { minItems: 2, items: { type: 'number' } } },
      many(2_000_000, () => [1, 2]),
    ],
    [
      '100,000 items of ten kinds',
      { items: { oneOf: list(10, (at) => ({ properties: { kind: { const: at } }, required: ['kind'] })) } },
      many(100_000, (at) => ({ kind: at % 10, text: 'x' })),
    ],
    ['1,000,000 different items', { type: 'array', uniqueItems: true }, many(1_000_000, (at) => at)],
    ['100,000 different objects', { uniqueItems: true }, many(100_000, (at) => ({ name: 'x', at }))],
    [
      '1,000 different items of 200 values',
      { uniqueItems: true, maxItems: 1_000 },
      many(1_000, (at) => ({ z: list(200, () => 1), at })),
    ],
    ['a text of 1 MiB with a pattern', { pattern: '^[abc]+$' }, noise],
  ])('is not in the way of large values: %s', (_, schema, value) => {
    expect(compile(schema)(value)).toEqual([]);
  });

  it('ends at the first error of a value that is too large to look for all', () => {
    const errors = compile({ items: { type: 'string' } })(list(1_000_000, (at) => at));
    expect(errors).toEqual([{ pointer: '/0', message: 'must be string, got 0' }]);
  });

  it('refuses a value that is nested too deeply', () => {
    const deep = JSON.parse(`${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`);
    const errors = compile({ properties: { a: { $ref: '#' } } })(deep);
    expect(errors).toEqual([{ pointer: '', message: 'is nested too deeply to be checked' }]);
  });
});

describe('uniqueItems', () => {
  it.each<[string, Json[], [number, number] | null]>([
    ['numbers', [1, 2, 3], null],
    ['the same number twice', [1, 2, 1], [0, 2]],
    ['a number and its text', [1, '1'], null],
    ['true and 1, false and 0, null and ""', [true, 1, false, 0, null, ''], null],
    ['0 and -0', [0, -0], [0, 1]],
    ['texts with quotation marks', ['a","b', 'a', 'b'], null],
    ['objects with their keys in another order', [{ a: 1, b: [2] }, 3, { b: [2], a: 1 }], [0, 2]],
    ['a list and an object of the same items', [['a'], { 0: 'a' }], null],
    [
      'lists of another order',
      [
        [1, 2],
        [2, 1],
      ],
      null,
    ],
    ['keys that look like others joined', [{ a: 1, b: 2 }, { 'a:1,b': 2 }], null],
    ['a key named __proto__', [JSON.parse('{"__proto__":1}'), {}], null],
  ])('%s', (_, value, same) => {
    const found = compile({ uniqueItems: true }).find(value);
    expect(found.map(({ keyword, params }) => ({ keyword, params }))).toEqual(
      same === null ? [] : [{ keyword: 'uniqueItems', params: { j: same[0], i: same[1] } }],
    );
  });
});
