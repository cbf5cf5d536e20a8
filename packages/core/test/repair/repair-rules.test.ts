import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import type { Json, JsonObject } from '../../src/contracts/primitives.ts';
import { isList, isPlainObject } from '../../src/json/values.ts';
import type { SchemaFinding } from '../../src/repair/candidate.ts';
import { applyRepair, proposeRepairs } from '../../src/repair/propose-repairs.ts';
import { createSchemaCompiler } from '../../src/schemas/schema-compiler.ts';
import { describeSchemaErrors } from '../../src/schemas/schema-errors.ts';

const { compile } = createSchemaCompiler();

function repair(schema: JsonObject, input: Json) {
  const { proposals, applicable } = proposeRepairs({ schema, input, errorsOf: compile(schema).find });
  const shown = proposals.map(({ operations }) => applyRepair(input, operations));
  return {
    shown,
    applied: applicable === null ? null : applyRepair(input, applicable.operations),
    proposals,
  };
}

function closed(properties: JsonObject, required: readonly string[] = []): JsonObject {
  return { type: 'object', properties, required, additionalProperties: false };
}

const number = { type: 'number' };
const integer = { type: 'integer' };
const text = { type: 'string' };
const flag = { type: 'boolean' };
const texts = { type: 'array', items: text };
const inSeconds = { ...number, description: 'How long to wait, in seconds.' };
const date = { ...text, format: 'date' };
const time = { ...text, format: 'date-time' };
const nested = closed({ build: closed({ target: text, minify: flag }), name: text });

describe('a repair that schema and input imply is applied', () => {
  it.each<[string, JsonObject, Json, Json]>([
    ['thousands as k', closed({ rate: integer }), { rate: '44.1k' }, { rate: 44_100 }],
    ['grouped digits', closed({ size: integer }), { size: '1_000_000' }, { size: 1_000_000 }],
    ['a unit that the key names', closed({ wait_ms: integer }), { wait_ms: '10s' }, { wait_ms: 10_000 }],
    ['a unit that the description names', closed({ wait: inSeconds }), { wait: '2 min' }, { wait: 120 }],
    ['a unit without others', closed({ width: integer }), { width: '320px' }, { width: 320 }],
    ['a word for true', closed({ a: flag }), { a: 'Yes' }, { a: true }],
    ['a word for false', closed({ a: flag }), { a: 'off' }, { a: false }],
    ['a number for digits', closed({ a: text }), { a: 8080 }, { a: '8080' }],
    ['a list for its only item', closed({ a: text }), { a: ['x'] }, { a: 'x' }],
    ['an item for its list', closed({ a: texts }), { a: 'x' }, { a: ['x'] }],
    ['JSON in a text', closed({ a: { type: 'array', items: integer } }), { a: '[1, 2]' }, { a: [1, 2] }],
    [
      'an item twice',
      closed({ a: { ...texts, uniqueItems: true, maxItems: 9 } }),
      { a: ['x', 'y', 'x'] },
      { a: ['x', 'y'] },
    ],
    ['a date with slashes', closed({ on: date }), { on: '2024/5/1' }, { on: '2024-05-01' }],
    ['a date with its day first', closed({ on: date }), { on: '31/12/2024' }, { on: '2024-12-31' }],
    ['a date in words', closed({ on: date }), { on: 'May 1, 2024' }, { on: '2024-05-01' }],
    [
      'a time with slashes',
      closed({ at: time }),
      { at: '2024/05/01 10:00:00Z' },
      { at: '2024-05-01T10:00:00Z' },
    ],
    [
      'a key too high',
      nested,
      { name: 'x', build: {}, target: 'es6' },
      { name: 'x', build: { target: 'es6' } },
    ],
    ['a key too deep', nested, { build: { name: 'x' } }, { build: {}, name: 'x' }],
    ['a unit in the name of a key', closed({ wait_ms: integer }), { wait_s: 2 }, { wait_ms: 2_000 }],
    ['a short key', closed({ env: text, run: text }), { rnu: 'x' }, { run: 'x' }],
    ['two words in one', closed({ compilerOptions: {} }), { compilerptions: 1 }, { compilerOptions: 1 }],
    ['a name with a sign', closed({ $schema: text }), { $Schema: 'x' }, { $schema: 'x' }],
    ['the only value there is', closed({ v: { const: 2 } }, ['v']), { v: 'two' }, { v: 2 }],
    ['an unknown key of null', closed({ a: text }), { a: 'x', b: null }, { a: 'x' }],
  ])('%s', (_, schema, input, answer) => {
    expect(repair(schema, input)).toMatchObject({ applied: answer, shown: [answer] });
  });
});

describe('a repair that may be another one is only shown', () => {
  it.each<[string, JsonObject, Json, readonly Json[]]>([
    [
      'a unit that nothing names',
      closed({ wait: integer }),
      { wait: '10s' },
      [{ wait: 10 }, { wait: 10_000 }],
    ],
    ['a comma', closed({ a: number }), { a: '1,500' }, [{ a: 1_500 }, { a: 1.5 }]],
    [
      'a month or a day',
      closed({ on: date }),
      { on: '5/6/2024' },
      [{ on: '2024-06-05' }, { on: '2024-05-06' }],
    ],
    [
      'a time without its zone',
      closed({ at: time }),
      { at: '2024-05-01 10:00' },
      [{ at: '2024-05-01T10:00:00Z' }],
    ],
    [
      'a number where a list fits too',
      closed({ a: { type: ['string', 'array'] } }),
      { a: 5 },
      [{ a: '5' }, { a: [5] }],
    ],
    ['a number with a point as text', closed({ a: text }), { a: 3.1 }, [{ a: '3.1' }]],
    ['several items in a text', closed({ a: texts }), { a: 'x, y' }, [{ a: ['x', 'y'] }, { a: ['x, y'] }]],
    [
      'two places for a key',
      closed({ a: nested, b: nested }),
      { a: {}, b: {}, name: 'x' },
      [
        { a: { name: 'x' }, b: {} },
        { a: {}, b: { name: 'x' } },
      ],
    ],
    [
      'a constant that occurs in a map beside it',
      { properties: { v: { const: 1 }, map: { additionalProperties: integer } }, required: ['v'] },
      { map: { v: 1 } },
      [{ v: 1, map: { v: 1 } }],
    ],
    [
      'an item for its list, where its key is known above',
      closed({ in: closed({ tags: texts }), tags: text }),
      { in: { tags: 'x' } },
      [{ in: { tags: ['x'] } }, { in: {}, tags: 'x' }],
    ],
    [
      'a key of a map',
      closed({ map: { additionalProperties: text } }),
      { map: {}, one: 'x' },
      [{ map: { one: 'x' } }, { map: {} }],
    ],
    ['a number beyond a bound', closed({ a: { maximum: 10 } }), { a: 11 }, [{ a: 10 }]],
    ['a key with a meaning', closed({ a: text }), { a: 'x', b: 7 }, [{ a: 'x' }]],
    [
      'a value with other letters',
      closed({ a: { enum: ['medium', 'slow'] } }),
      { a: 'redium' },
      [{ a: 'medium' }],
    ],
    ['a key of an empty list', closed({ a: { type: 'array', items: {} } }), { a: {} }, [{ a: [{}] }]],
  ])('%s', (_, schema, input, answers) => {
    expect(repair(schema, input)).toMatchObject({ applied: null, shown: answers });
  });

  it('gives a reason with each proposal', () => {
    const { proposals } = repair(closed({ rate: integer }), { rate: '44.1k' });
    expect(proposals.map(({ description }) => description)).toEqual([
      'read "44.1k" as 44100 at /rate, because k multiplies by 1000',
    ]);
  });
});

/** An expression: a number, a text, or an operation on two of them. */
const expression: JsonObject = {
  $ref: '#/$defs/node',
  $defs: {
    node: { oneOf: [{ $ref: '#/$defs/value' }, { $ref: '#/$defs/sum' }, { $ref: '#/$defs/negation' }] },
    value: closed({ kind: { const: 'value' }, amount: integer, enabled: flag }, ['kind', 'amount']),
    sum: closed(
      { kind: { const: 'sum' }, terms: { type: 'array', items: { $ref: '#/$defs/node' }, maxItems: 3 } },
      ['kind', 'terms'],
    ),
    negation: closed({ kind: { const: 'negation' }, operand: { $ref: '#/$defs/node' } }, ['kind', 'operand']),
  },
};

const checkTree = new Ajv2020({ strict: false, allErrors: true, verbose: true }).compile(expression);

function findInTree(input: Json): readonly SchemaFinding[] {
  return checkTree(input) ? [] : describeSchemaErrors(checkTree.errors ?? []);
}

const { tree } = fc.letrec<{ tree: JsonObject }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.record({ kind: fc.constant('value'), amount: fc.integer({ min: 0, max: 9_999 }) }),
    fc.record({ kind: fc.constant('sum'), terms: fc.array(tie('tree'), { maxLength: 3 }) }),
    fc.record({ kind: fc.constant('negation'), operand: tie('tree') }),
  ),
}));

type Spoil = (object: JsonObject, key: string) => JsonObject;

function without(object: JsonObject, key: string): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => name !== key));
}

const spoils: readonly Spoil[] = [
  (object, key) => without(object, key),
  (object, key) => ({ ...without(object, key), [key.toUpperCase()]: object[key] ?? null }),
  (object, key) => ({ ...without(object, key), [`${key}x`]: object[key] ?? null }),
  (object, key) => ({ ...object, [key]: [object[key] ?? null] }),
  (object, key) => ({ ...object, [key]: JSON.stringify(object[key]).toUpperCase() }),
  (object, key) => ({ ...object, [key]: null }),
  (object) => ({ ...object, enabled: 'yes' }),
  (object) => ({ ...object, more: {} }),
];

/** Spoils a key of an object, as deep as the numbers lead. */
function spoil(value: Json, [key = 0, kind = 0, ...rest]: readonly number[]): Json {
  if (isList(value))
    return value.map((item, at) => (at === key % value.length ? spoil(item, [kind, ...rest]) : item));
  if (!isPlainObject(value)) return value;
  const name = Object.keys(value)[key % Object.keys(value).length] ?? '';
  const child = value[name];
  if (typeof child === 'object' && kind > 3 && rest.length > 0)
    return { ...value, [name]: spoil(child, rest) };
  return spoils[kind % spoils.length]?.(value, name) ?? value;
}

const place = fc.array(fc.nat(20), { minLength: 2, maxLength: 10 });

function repairTree(input: Json) {
  return proposeRepairs({ schema: expression, input, errorsOf: findInTree });
}

describe('in a union that leads back to itself', () => {
  it('each proposal makes the input valid, and a certain one is the only one', () => {
    let applied = 0;
    fc.assert(
      fc.property(tree, place, (right, at) => {
        const input = spoil(right, at);
        const { proposals, applicable } = repairTree(input);
        expect(proposals.length).toBeLessThanOrEqual(3);
        for (const { operations } of proposals) {
          expect(findInTree(applyRepair(input, operations) ?? null)).toEqual([]);
        }
        if (applicable === null) return;
        applied++;
        expect(proposals).toEqual([applicable]);
      }),
      { numRuns: runs(150) },
    );
    expect(applied).toBeGreaterThan(runs(10));
  });

  it('a valid input has none', () => {
    fc.assert(
      fc.property(tree, (input) => {
        expect(repairTree(input)).toEqual({ proposals: [], applicable: null });
      }),
      { numRuns: runs(50) },
    );
  });

  it('a key that is misspelt deep inside gets its name back', () => {
    const input = { kind: 'negation', operand: { kind: 'sum', terms: [{ kind: 'value', amuont: 5 }] } };
    const { applicable } = repairTree(input);
    expect(applicable?.operations).toEqual([
      { op: 'move', from: '/operand/terms/0/amuont', path: '/operand/terms/0/amount' },
    ]);
  });
});

it('a key with a default is not added where another one without a value may be meant', () => {
  const aql = { type: 'object', default: { items: 'all' } };
  const file = {
    properties: { pattern: text, aql },
    anyOf: [{ required: ['pattern'] }, { required: ['aql'] }],
  };
  expect(repair(file, {})).toMatchObject({ applied: null, shown: [{ aql: { items: 'all' } }] });
  expect(repair({ ...file, anyOf: [{ required: ['aql'] }] }, {}).applied).toEqual({ aql: { items: 'all' } });
});

it('a key that holds null is not left out where a known name is near', () => {
  const schema = closed({ log: {} });
  expect(repair(schema, { lo: null }).applied).not.toEqual({});
  expect(repair(schema, { other: null }).applied).toEqual({});
});

it('a name between two known ones is never one of them', () => {
  const known = ['targets', 'workers', 'minutes', 'folders', 'outputs'];
  fc.assert(
    fc.property(
      fc.constantFrom(...known),
      fc.nat(5),
      fc.constantFrom('qq', 'zq', 'qz'),
      (name, at, [a = '', b = '']) => {
        const place = 1 + (at % (name.length - 1));
        const [one, other, input] = [a, b, ''].map(
          (letter) => name.slice(0, place) + letter + name.slice(place + (letter === '' ? 1 : 0)),
        );
        const schema = closed({ [one ?? '']: text, [`${other}`]: text });
        if (one === other) return;
        expect(repair(schema, { [input ?? '']: 'x' })).toMatchObject({ applied: null });
      },
    ),
  );
});
