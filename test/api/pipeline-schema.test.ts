import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { readDefinition } from '@capstan/core/definitions/read-definition';
import Ajv from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { createPipelineSchema } from '../../src/api/documents/docs.ts';

const schema = createPipelineSchema('http://capstan.test');
const validate = new Ajv.Ajv2020({ strict: true, strictRequired: false, strictTypes: false }).compile(schema);

function isAccepted(definition: Json): boolean {
  const source = { text: JSON.stringify(definition), contentType: 'application/json' };
  return readDefinition(source, { knownCapabilities: null, strict: false }).definition !== null;
}

function aStep(keys: JsonObject = {}): JsonObject {
  return { id: 'a', capability: 'probe', ...keys };
}
function aDefinition(keys: JsonObject = {}): JsonObject {
  return {
    pipeline: 'p',
    version: '1',
    steps: [aStep()],
    ...keys,
  };
}
function withStep(keys: JsonObject): JsonObject {
  return aDefinition({ steps: [aStep(keys)] });
}
function withKind(keys: JsonObject): JsonObject {
  return aDefinition({ steps: [{ id: 'a', ...keys }] });
}

const accepted: readonly JsonObject[] = [
  aDefinition(),
  aDefinition({
    description: 'all keys',
    job_schema: { type: 'object', required: ['clips'], properties: { clips: { type: 'array' } } },
    defaults: {
      retry: { max: 0, initial: '500ms', factor: 1.5, max_delay: '1m' },
      timeout: '10s',
      priority: 'batch',
      budget_ceiling_usd: 0.5,
    },
    budget_ceiling_usd: 10,
    priority: 'interactive',
    concurrency: { key: '{{ job.user }}', limit: 2, on_limit: 'reject' },
    timeout: '1h',
    labels: { team: 'video' },
    output: ['{{ steps.a.output }}', 1, null],
  }),
  withStep({
    description: 'all keys',
    depends_on: [],
    input: { any: ['{{ job.x }}', { deep: null }] },
    retry: { max: 2 },
    timeout: '30s',
    total_timeout: '10m',
    priority: 'standard',
    budget_ceiling_usd: 0,
    escalate: {
      enabled: true,
      start_level: 1,
      max_level: 3,
      max_usd: 0.2,
      repair: 'apply',
      on_exhausted: 'fail',
    },
    capability_version: '^1.2.0',
    tags: ['gpu'],
    allow_output: true,
    optional: true,
  }),
  withStep({ when: 'job.x == 1', run_if: 'all_done', on_error: 'continue' }),
  withStep({ wait_for_capability: '5m' }),
  withStep({ dispatch: 'inline' }),
  withStep({
    for_each: { items: '{{ job.clips }}', max_parallel: 4, tolerate: 1 },
    input: { clip: '{{ item }}' },
  }),
  withStep({ for_each: { items: [1, 2] } }),
  withKind({ wait: '30s' }),
  withKind({ review: { title: 'Good?', schema: { type: 'object' }, timeout: '48h', on_timeout: 'skip' } }),
];

const refused: readonly Json[] = [
  null,
  [],
  {},
  aDefinition({ pipeline: 'no spaces' }),
  aDefinition({ version: 1 }),
  aDefinition({ version: '' }),
  aDefinition({ steps: [] }),
  aDefinition({ steps: {} }),
  aDefinition({ stpes: [] }),
  aDefinition({ job_schema: [] }),
  aDefinition({ defaults: { tags: [] } }),
  aDefinition({ labels: { a: 1 } }),
  aDefinition({ labels: { ['x'.repeat(65)]: '' } }),
  aDefinition({ concurrency: { key: 'k' } }),
  aDefinition({ concurrency: { key: 'k', limit: 0 } }),
  aDefinition({ timeout: '1 hour' }),
  withStep({ id: '1a' }),
  withStep({ capability: '' }),
  withStep({ depends: [] }),
  withStep({ depends_on: 'b' }),
  withStep({ input: 'x' }),
  withStep({ run_if: 'always' }),
  withStep({ on_error: 'ignore' }),
  withStep({ when: '' }),
  withStep({ when: true }),
  withStep({ for_each: {} }),
  withStep({ for_each: { items: [], max_parallel: 0 } }),
  withStep({ for_each: { items: [], parallel: 1 } }),
  withStep({ retry: { max: -1 } }),
  withStep({ retry: { max: 1.5 } }),
  withStep({ retry: { times: 1 } }),
  withStep({ timeout: 30 }),
  withStep({ priority: 'high' }),
  withStep({ budget_ceiling_usd: -1 }),
  withStep({ escalate: { repair: 'always' } }),
  withStep({ tags: [''] }),
  withStep({ dispatch: 'direct' }),
  withStep({ optional: 'yes' }),
  withKind({}),
  withKind({ capability: 'probe', wait: '1s' }),
  withKind({ wait: 'soon' }),
  withKind({ review: {} }),
  withKind({ review: { title: '' } }),
  withKind({ pipeline: 'other' }),
];

function name(definition: Json): string {
  return JSON.stringify(definition).slice(0, 110);
}

describe('the schema for editors', () => {
  it.each(accepted.map((row) => [name(row), row] as const))(
    'accepts what is accepted: %s',
    (_, definition) => {
      expect([validate(definition), validate.errors]).toEqual([true, null]);
      expect(isAccepted(definition)).toBe(true);
    },
  );

  it.each(refused.map((row) => [name(row), row] as const))('refuses what is refused: %s', (_, definition) => {
    expect(validate(definition)).toBe(false);
    expect(isAccepted(definition)).toBe(false);
  });

  it('explains every key, and knows no others', () => {
    const objects: JsonObject[] = [];
    JSON.stringify(schema, (_, value) => {
      if (typeof value?.properties === 'object') objects.push(value);
      return value;
    });
    expect(objects.length).toBeGreaterThan(6);
    for (const { properties, additionalProperties } of objects) {
      expect(additionalProperties).toBe(false);
      for (const [key, value] of Object.entries(properties as JsonObject)) {
        expect([key, value]).toEqual([
          key,
          expect.objectContaining({ description: expect.stringMatching(/\.$/) }),
        ]);
      }
    }
  });

  it('has a title and its own address', () => {
    expect(schema).toMatchObject({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $id: 'http://capstan.test/v1/schemas/pipeline.json',
      title: 'Capstan pipeline',
      type: 'object',
    });
    expect(createPipelineSchema(undefined)).toMatchObject({ $id: '/v1/schemas/pipeline.json' });
  });
});
