import type { JsonObject } from '@capstan/core/contracts/primitives';
import { createSchemaCompiler } from '@capstan/core/schemas/schema-compiler';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { countThreadMs } from '../../support/processor-time.ts';
import { waitFor } from '../../support/wait.ts';
import { aSpec } from './fake-instance.ts';
import { aHeavySchema } from './heavy-schema.ts';
import { openRegistryBench, project, type RegistryBench } from './registry-bench.ts';

let bench: RegistryBench;
beforeAll(async () => {
  bench = await openRegistryBench();
});
afterAll(() => bench.close());

async function register(input: JsonObject, name = 'hostile') {
  const instance = await bench.start(aSpec({ name, input }));
  await bench.registry.register(project, instance.registration());
  return instance;
}

function nest(levels: number): JsonObject {
  return levels === 1 ? {} : { not: nest(levels - 1) };
}
function texts(count: number) {
  return Array.from({ length: count }, (_, at) => `v${at}`);
}

describe('an instance whose spec holds a hostile schema', () => {
  it.each<[string, JsonObject, string]>([
    ['what is no schema', { type: ['object', 7] }, '/type'],
    ['a huge enum', { enum: texts(5_001) }, 'enum with 5001 values, at most 5000 allowed'],
    ['a remote reference', { $ref: 'http://169.254.169.254/latest' }, 'leaves the document'],
    ['deep nesting', nest(33), 'nested deeper than 32 levels'],
    [
      '$data',
      { properties: { a: { const: { $data: '1/b' } }, b: { maximum: { $data: '1/a' } } } },
      'maximum',
    ],
    ['a pattern that is huge in few characters', { pattern: 'a{1000}'.repeat(60) }, 'instructions'],
    ['a reference to itself', { allOf: [{ $ref: '#' }] }, 'leads back to itself'],
    ['more than 64 KiB', { description: 'x'.repeat(65_536) }, 'more than 65536 bytes'],
  ])('is quarantined with the reason shown: %s', async (_, input, reason) => {
    const instance = await register(input);
    const quarantined = await waitFor('the quarantine', async () => {
      const row = await bench.read(instance.url);
      return row.state === 'quarantined' ? row : null;
    });
    const said = input.description === undefined ? '/spec: its input schema cannot be used: ' : '/spec: ';
    expect(quarantined.reason?.slice(0, said.length)).toBe(said);
    expect(quarantined.reason).toContain(reason);
  });

  it('is accepted when the schema is only meant to look hostile', async () => {
    const input = { required: ['toString'], properties: { a: { pattern: '^(a+)+$' } } };
    const instance = await register(input, 'odd.but.fine');
    await waitFor('the spec is read', async () => (await bench.read(instance.url)).spec_digest !== null);
    const [spec] = (await bench.registry.get('odd.but.fine')).specs;
    expect(spec).not.toHaveProperty('not_enforced');
  });

  it('is accepted when a pattern cannot run in linear time, and its page lists the parts that are not enforced', async () => {
    const input = { properties: { a: { pattern: '^(?!\\.)' } }, not: { required: ['b'] } };
    const instance = await register(input, 'looks.ahead');
    await waitFor('the spec is read', async () => (await bench.read(instance.url)).spec_digest !== null);
    const { specs } = await bench.registry.get('looks.ahead');
    const reason = expect.stringContaining('linear time');
    expect(specs.map(({ not_enforced }) => not_enforced)).toEqual([
      [{ schema: 'input', pointer: '/properties/a/pattern', keyword: 'pattern', reason }],
    ]);
  });

  it.runIf(process.platform === 'linux')(
    'does not hold up the process while its schema is compiled',
    async () => {
      const warm = await register({ type: 'object', minProperties: 1 }, 'warm');
      await waitFor('the thread is up', async () => (await bench.read(warm.url)).spec_digest !== null);
      const vettingMs = countThreadMs();
      const heavy = await register(aHeavySchema(440), 'heavy');
      await waitFor('a verdict', async () => {
        const { state, spec_digest } = await bench.read(heavy.url);
        return state === 'quarantined' || spec_digest !== null;
      });
      const spentMs = vettingMs();
      const compilingMs = countThreadMs();
      createSchemaCompiler().compile(aHeavySchema(440));
      expect(spentMs).toBeLessThan(compilingMs() / 2);
    },
  );
});
