import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { type AnsweredTask, proposeCorrections } from '@capstan/core/ladder/correction';
import { createSchemaCompiler, SchemaRefused } from '@capstan/core/schemas/schema-compiler';
import { describe, expect, it } from 'vitest';
import { anInstance } from '../../../packages/core/test/routing/a-snapshot.ts';
import type { Ctx } from '../../../src/context.ts';
import { insertSpec } from '../../../src/db/instance/capability-spec.ts';
import { createSchemaValidator } from '../../../src/parts/fleet/specs.ts';
import { checkInput } from '../../../src/use-cases/reviews/input.ts';
import { useDatabase } from '../../support/database.ts';
import { aFleet } from '../../support/intake.ts';
import { countProcessorMs } from '../../support/processor-time.ts';
import { aSpec } from '../../use-cases/registry/fake-instance.ts';

const { compile } = createSchemaCompiler();

function branches(count: number): JsonObject[] {
  return Array.from({ length: count }, (_, n): JsonObject => {
    const property: JsonObject = { oneOf: [{ const: n }, { type: 'string', minLength: n }] };
    return { properties: { [`k${n}`]: property }, required: [`k${n}`] };
  });
}

function errorsOf(schema: JsonObject, value: Json): string[] {
  return compile(schema)(value).map(({ pointer, message }) => `${pointer} ${message}`);
}

describe('a compiled schema', () => {
  it('names each field, what it is and what is allowed', () => {
    const schema: JsonObject = {
      type: 'object',
      properties: {
        mode: { enum: ['fast', 'slow'] },
        clips: { type: 'array', items: { type: 'object', required: ['path'], properties: { path: {} } } },
        level: { type: 'number', maximum: 1 },
        kind: { const: 'a' },
      },
      required: ['name'],
      additionalProperties: false,
    };
    const value = { mode: 'quick', clips: [{}, 3], level: '7', kind: { b: 1 }, colour: 'red' };
    expect(errorsOf(schema, value).sort()).toEqual([
      '/clips/0/path is required',
      '/clips/1 must be object, got 3',
      '/colour is not allowed; allowed: mode, clips, level, kind',
      '/kind must be "a", got an object',
      '/level must be number, got "7"',
      '/mode must be one of "fast", "slow", got "quick"',
      '/name is required',
    ]);
  });

  it('lists at most twenty faults of a long list', () => {
    const value = Array.from({ length: 10_000 }, (_, at) => at);
    expect(errorsOf({ items: { type: 'string' } }, value)).toHaveLength(20);
  });

  it('does not take inherited names for fields', () => {
    expect(errorsOf({ required: ['toString'] }, {})).toEqual(['/toString is required']);
  });

  it('checks a hostile pattern in linear time', () => {
    const check = compile({ type: 'string', pattern: '^(a+)+$' });
    const spentMs = countProcessorMs();
    expect(check(`${'a'.repeat(5_000)}!`)).toHaveLength(1);
    expect(check('a'.repeat(5_000))).toHaveLength(0);
    expect(spentMs()).toBeLessThan(1_000);
  });

  it('keeps patterns apart, unanchored, and reads those that need no u flag', () => {
    const schema = {
      properties: { a: { pattern: '^x' }, b: { pattern: 'y' }, c: { pattern: '^[\\w\\-.]+\\/\\d$' } },
    };
    expect(errorsOf(schema, { a: 'x1', b: 'ayb', c: 'a-b/1' })).toEqual([]);
    expect(errorsOf(schema, { a: 'y', b: 'x', c: 'a b/1' })).toHaveLength(3);
  });

  it('reads draft-07 where $schema names it, and 2020-12 elsewhere', () => {
    const tuple = { items: [{ type: 'string' }, { type: 'number' }], additionalItems: false };
    const draft7 = { $schema: 'http://json-schema.org/draft-07/schema#', ...tuple };
    expect(errorsOf(draft7, ['a', 1])).toEqual([]);
    expect(errorsOf(draft7, ['a', 1, 2])).toHaveLength(1);
    const draft2020 = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      prefixItems: [{ type: 'string' }],
    };
    expect(errorsOf(draft2020, [1])).toEqual(['/0 must be string, got 1']);
    expect(() => compile(tuple)).toThrow(/items/);
  });

  it('follows references to its own root', () => {
    const list: JsonObject = {
      properties: { value: { type: 'number' }, next: { anyOf: [{ type: 'null' }, { $ref: '#' }] } },
    };
    expect(errorsOf(list, { value: 1, next: { value: 2, next: null } })).toEqual([]);
    expect(errorsOf(list, { next: { next: { value: 'x' } } })).toContain(
      '/next/next/value must be number, got "x"',
    );
  });

  it('lets two schemas carry the same $id', () => {
    const $id = 'https://example.org/input';
    expect(errorsOf({ $id, type: 'string' }, 1)).toHaveLength(1);
    expect(errorsOf({ $id, type: 'number' }, 1)).toEqual([]);
  });

  it.each<[string, JsonObject, RegExp]>([
    ['an unknown type', { type: 'objekt' }, /type/],
    ['a reference to nothing', { $ref: '#/$defs/none' }, /none/],
    ['a broken pattern', { pattern: '(' }, /missing closing/],
    [
      'the meta-schema by another way',
      { $dynamicRef: 'https://json-schema.org/draft/2020-12/schema' },
      /leaves/,
    ],
  ])('refuses %s', (_, schema, reason) => {
    expect(() => compile(schema)).toThrow(reason);
  });
});

describe('createSchemaValidator', () => {
  const { db } = useDatabase(3);

  it('checks input and output by the spec of the digest, and remembers it', async () => {
    const spec = aSpec();
    await insertSpec(db, { name: spec.name, version: spec.version, digest: 'd1', spec });
    const validator = createSchemaValidator({ db, maxSpecs: 2 });
    const known = await validator.of('d1');
    expect(known.spec).toEqual(spec);
    expect(await known.input({ clips: [] })).toEqual([]);
    expect(await known.input({})).toEqual([{ pointer: '/clips', message: 'is required' }]);
    await db('capability_spec').delete();
    expect(await (await validator.of('d1')).output({ output_path: 7 })).toMatchObject([
      { pointer: '/output_path' },
    ]);
  });

  it('compiles a schema of a job or a review once, whatever the order of its keys', async () => {
    const validator = createSchemaValidator({ db });
    const check = validator.ofSchema({ type: 'object', required: ['a'] });
    expect(validator.ofSchema({ required: ['a'], type: 'object' })).toBe(check);
    expect(validator.ofSchema({ required: ['b'], type: 'object' })).not.toBe(check);
    expect(await check({})).toMatchObject([{ pointer: '/a' }]);
    expect(() => validator.ofSchema({ $ref: 'https://a.example' })).toThrow(SchemaRefused);
  });

  it.each([
    ['a union', { anyOf: branches(60), unevaluatedProperties: false }],
    ['conditions', { allOf: branches(60).map((then) => ({ if: { required: ['z'] }, then })) }],
    ['one of many', { oneOf: branches(60) }],
  ])(
    'finds what is wrong with an input and its repairs, by a schema that is compiled elsewhere: %s',
    async (name, schema) => {
      const spec = { ...aSpec(), name, input: { type: 'object', ...schema } };
      await insertSpec(db, { name, version: spec.version, digest: name, spec });
      const instance = anInstance('one', { version: spec.version, spec_digest: name });
      const fleet = aFleet({ instances: [instance], priorMs: 0 }) as Ctx['fleet'];
      const ctx = { db, fleet, validator: createSchemaValidator({ db }) };
      const here = { schema: spec.input, find: compile(spec.input).find };
      for (const input of [{ z: 1 }, { k3: 7 }, { K3: 3 }] as unknown as JsonObject[]) {
        const found = await checkInput(ctx, { projectId: 'prj_one', name }, { input, tags: [] });
        const task = {
          capability: name,
          repair: 'propose',
          spec: here,
          original: input,
          current: input,
          failed: [],
        };
        expect(found.proposals).toEqual(found.valid ? [] : proposeCorrections(task as AnsweredTask));
        expect(found.errors).toEqual(compile(spec.input)(input));
      }
      await ctx.validator.close();
    },
  );

  it('asks again after a digest was unknown', async () => {
    const spec = aSpec();
    const validator = createSchemaValidator({ db });
    await expect(validator.of('d2')).rejects.toMatchObject({ code: 'not_found' });
    await insertSpec(db, { name: spec.name, version: spec.version, digest: 'd2', spec });
    expect((await validator.of('d2')).spec).toEqual(spec);
  });
});
