/** Checks by foreign schemas in a process that serves others: what is compiled and checked here, and what in a thread. */
import { setImmediate } from 'node:timers/promises';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../../src/contracts/primitives.ts';
import { findSchemaFault, isLightSchema } from '../../src/foreign-schema.ts';
import { proposeRepairs } from '../../src/repair/propose-repairs.ts';
import { createForeignChecks, type ForeignChecks } from '../../src/schemas/foreign-check.ts';
import { createSchemaCompiler, SchemaRefused } from '../../src/schemas/schema-compiler.ts';

const usual = createForeignChecks();
const others: ForeignChecks[] = [];
afterEach(() => Promise.all(others.splice(0).map((one) => one.close())));
afterAll(() => usual.close());

function list<Value>(count: number, make: (at: number) => Value): Value[] {
  return Array.from({ length: count }, (_, at) => make(at));
}

function named(count: number, make: (at: number) => Json, prefix = 'k'): JsonObject {
  return Object.fromEntries(list(count, (at) => [`${prefix}${at}`, make(at)]));
}

function branch(at: number): JsonObject {
  const oneOf: Json = [{ const: at }, { type: 'string', minLength: at }];
  return { properties: { [`k${at}`]: { oneOf } }, required: [`k${at}`] };
}

function condition(at: number): JsonObject {
  const [asked, wanted] = [`a${at}`, `b${at}`].map((name) => ({ required: [name] }));
  return Object.fromEntries([
    ['if', asked],
    ['then', wanted],
    ['else', branch(at)],
  ]) as JsonObject;
}

/** Each by its size; `{ z: 1 }` is not valid by most. */
const shapes: Readonly<Record<string, (size: number) => JsonObject>> = {
  'a union that leaves nothing unevaluated': (size) => ({
    anyOf: list(size, branch),
    unevaluatedProperties: false,
  }),
  'a union by one name': (size) => ({
    $defs: { wide: { properties: named(size, () => ({})) } },
    anyOf: list(size, () => ({ $ref: '#/$defs/wide' })),
    unevaluatedProperties: false,
  }),
  'types only': (size) => ({ anyOf: list(size, () => ({ type: 'string' })) }),
  conditions: (size) => ({ allOf: list(size, condition) }),
  properties: (size) => ({
    properties: named(size, (at) => ({ type: 'string', minLength: at, description: 'long'.repeat(at) })),
    required: ['k0'],
  }),
  patterns: (size) => ({
    properties: named(size, (at) => ({ pattern: `^[a-z]{${at % 90}}(x|y)+${at}$` })),
    required: ['q'],
  }),
  'names by pattern': (size) => ({
    patternProperties: named(size, () => ({ type: 'string' }), '^p'),
    required: ['q'],
  }),
  'dependent schemas': (size) => ({
    dependentSchemas: named(size, (at) => ({ required: [`q${at}`] })),
    required: ['q'],
  }),
  'required names in a union': (size) => ({
    anyOf: list(size, (at) => ({ required: list(size / 10, (one) => `q${at}-${one}`) })),
  }),
  'small enums': (size) => ({
    allOf: list(1 + size / 40, () => ({ enum: list(190, (at) => `value ${at}`) })),
  }),
  references: (size) => ({
    $defs: named(size, (at) => ({
      properties: { x: { $ref: `#/$defs/k${(at * 7 + 1) % size}` } },
      required: [`q${at}`],
    })),
    $ref: '#/$defs/k0',
  }),
  tuples: (size) => ({ type: 'array', prefixItems: list(size, (at) => ({ type: 'integer', minimum: at })) }),
};
const names = Object.keys(shapes);

function shape(name: string, size: number): JsonObject {
  return (shapes[name] as (size: number) => JsonObject)(size);
}

const sizes = [1, 2, 5, 10, 20, 40, 80, 160, 300];

/** As large as a schema may be. */
function largest(name: string): JsonObject {
  const allowed = sizes.map((size) => shape(name, size)).filter((schema) => findSchemaFault(schema) === null);
  return allowed.at(-1) as JsonObject;
}

const values: readonly Json[] = [{ z: 1 }, { k1: 1, b0: 1 }, [0, 1, 2]];

/** Characters that ajv makes of a schema: compiling takes time in proportion. */
function measureCode(schema: JsonObject): number {
  const unevaluated = JSON.stringify(schema).includes('unevaluated');
  const ajv = new Ajv2020({
    strict: false,
    verbose: true,
    inlineRefs: false,
    code: { source: true },
    unevaluated,
  });
  let characters = 0;
  const { compile } = ajv;
  ajv.opts.code.process = (code) => {
    characters += code.length;
    return code;
  };
  compile.call(ajv, schema);
  return characters;
}

describe('a light schema', () => {
  it.each(names)('is one that compiles soon: %s', (name) => {
    const light = sizes.filter((size) => isLightSchema(shape(name, size)));
    expect(light.length).toBeGreaterThan(0);
    expect(light.length).toBeLessThan(sizes.length);
    for (const size of light) expect(measureCode(shape(name, size))).toBeLessThan(150_000);
  });

  it('may have many parts that are not compiled', () => {
    const properties = named(40, (at) => ({
      type: 'string',
      description: 'x'.repeat(5_000),
      examples: list(50, () => at),
    }));
    expect(isLightSchema({ type: 'object', properties })).toBe(true);
    expect(isLightSchema({ enum: list(4_000, (at) => `country ${at}`) })).toBe(true);
  });
});

describe('a check by a foreign schema', () => {
  it.each(names)('gives the verdict of the schema, wherever it is made: %s', async (name) => {
    for (const schema of [shape(name, 2), largest(name)]) {
      const known = createSchemaCompiler().compile(schema);
      const check = usual.of(schema);
      for (const value of values) {
        expect(await check(value)).toEqual(known(value));
        expect(await check.find(value)).toEqual(known.find(value));
        const question = { schema, input: value, errorsOf: known.find };
        expect(await check.repair(value)).toEqual(proposeRepairs(question));
      }
    }
  });

  it('is not made here by a schema that is not light', () => {
    const checks = names.map((name) => usual.of(largest(name))({ z: 1 }));
    expect(checks.every((one) => one instanceof Promise)).toBe(true);
    return Promise.all(checks);
  });

  it('is made at once by light schemas, some in a turn', async () => {
    const check = usual.of({ required: ['a'] });
    await check({});
    await setImmediate();
    expect(check({})).toEqual([{ pointer: '/a', message: 'is required' }]);
    const first = list(20, (at) => usual.of({ required: [`a${at}`] })).map((one) => one({}));
    expect(first.filter((one) => !(one instanceof Promise)).length).toBeLessThan(3);
    expect(await Promise.all(first)).toEqual(
      list(20, (at) => [{ pointer: `/a${at}`, message: 'is required' }]),
    );
  });

  it.each<[string, JsonObject, Json]>([
    ['long texts and a pattern', { items: { pattern: '^(a+)+$' } }, list(20, () => 'a'.repeat(20_000))],
    ['many values in a union', { items: { anyOf: list(30, branch) } }, list(2_000, () => ({ k29: 29 }))],
    ['different objects', { uniqueItems: true }, list(20_000, (at) => ({ at, text: 'x'.repeat(20) }))],
  ])('continues in a thread when it takes long, with the same verdict: %s', async (_, schema, value) => {
    const check = usual.of(schema);
    await check([]);
    const found = check(value);
    expect(found).toBeInstanceOf(Promise);
    expect(await found).toEqual([]);
    const other = [...(value as Json[]), (value as Json[])[0] as Json, 'b'];
    expect(await check(other)).toEqual(createSchemaCompiler().compile(schema)(other));
  });

  it('refuses a value that takes all the work that is allowed', async () => {
    const check = usual.of({ items: { pattern: '^(a+)+$' } });
    expect(await check(list(200, () => 'a'.repeat(50_000)))).toEqual([
      { pointer: '', message: 'is too much work to check against the schema; it must be smaller' },
    ]);
  });

  it('takes turns with those by other schemas', async () => {
    const ends: string[] = [];
    const note = (name: string) => (): void => void ends.push(name);
    const many = usual.of(largest('conditions'));
    const one = usual.of(largest('types only'));
    const first = list(10, (at) => Promise.resolve(many({ z: at })).then(note('many')));
    await Promise.all([...first, Promise.resolve(one({})).then(note('one'))]);
    expect(ends.indexOf('one')).toBeLessThan(3);
  });

  it('ends when its schema takes too long to compile, and others continue', async () => {
    const checks = createForeignChecks({ timeLimitMs: 60 });
    others.push(checks);
    const slow = checks.of(shape('a union by one name', 600));
    const [found, next] = await Promise.all([slow({ z: 1 }), checks.of(shape('small enums', 80))('value 1')]);
    expect(found).toMatchObject([{ message: expect.stringContaining('too much work') }]);
    expect(next).toEqual([]);
  });

  it('refuses a schema that cannot be used', async () => {
    expect(() => usual.of({ $ref: 'https://a.example' })).toThrow(SchemaRefused);
    const fault = { anyOf: [...list(300, () => ({ type: 'string' })), { type: 'objekt' }] };
    await expect(usual.of(fault)({})).rejects.toThrow(SchemaRefused);
    await expect(usual.of(fault)({})).rejects.toThrow(SchemaRefused);
  });
});
