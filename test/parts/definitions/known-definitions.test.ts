import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import { Meter } from '@capstan/core/expression/meter';
import { expect, it } from 'vitest';
import {
  checkJob,
  createKnownDefinitions,
  readConcurrencyKey,
} from '../../../src/parts/definitions/known-definitions.ts';
import { createSchemaValidator } from '../../../src/parts/fleet/specs.ts';
import { useDatabase } from '../../support/database.ts';

const { db } = useDatabase();

function know(vet: () => Promise<string | null>) {
  return createKnownDefinitions({ db, vetter: { vet } });
}
function aDefinition(over: Partial<PipelineDefinition>): PipelineDefinition {
  return {
    pipeline: 'given',
    version: '1',
    steps: [{ id: 'a', capability: 'x' }],
    ...over,
  };
}
const run = { id: 'run_1', job_id: 'job_1', attempt: 1, pipeline: 'given', version: '1' };

it('a schema from a request is vetted before it is compiled', async () => {
  const definition = aDefinition({ job_schema: { type: 'object', properties: { n: { type: 'integer' } } } });
  await expect(know(async () => 'takes too long').ofBody(definition)).rejects.toMatchObject({
    code: 'definition_invalid',
    message: expect.stringContaining('takes too long'),
  });
  const sound = await know(async () => null).ofBody(definition);
  const ctx = { validator: createSchemaValidator({ db }) };
  await expect(checkJob(ctx, sound, { n: 'one' })).rejects.toMatchObject({ code: 'job_invalid' });
});

it.each([
  ['a list', ['a']],
  ['an object', { a: 1 }],
  ['null', null],
  ['a long text', 'x'.repeat(257)],
  ['half of a pair of surrogates', '\ud800'],
  ['NUL', '\u0000'],
])('a concurrency key is a short text, number or boolean, and not %s', async (_, user) => {
  const known = await know(async () => null).ofBody(
    aDefinition({ concurrency: { key: '{{ job.user }}', limit: 1, on_limit: 'queue' } }),
  );
  expect(['x', 7, true].map((value) => readConcurrencyKey(known, { job: { user: value }, run }))).toEqual([
    'x',
    '7',
    'true',
  ]);
  expect(() => readConcurrencyKey(known, { job: { user }, run })).toThrow(
    expect.objectContaining({
      code: 'job_invalid',
      message: expect.stringMatching(/^concurrency\.key.{0,120}$/),
    }),
  );
});

it.each([
  ['of a text', `{{ job.text${' | lower'.repeat(50)} | length }}`],
  ['of numbers', `{{ job.numbers${' | sort'.repeat(50)} | length }}`],
])('a concurrency key that takes much work %s is refused with its place', async (_, key) => {
  const known = await know(async () => null).ofBody(
    aDefinition({ concurrency: { key, limit: 1, on_limit: 'queue' } }),
  );
  const job = { text: 'x'.repeat(100_000), numbers: Array.from({ length: 10_000 }, (__, at) => at) };
  expect(() => readConcurrencyKey(known, { job, run })).toThrow(
    expect.objectContaining({
      code: 'expression_limit',
      errors: [expect.objectContaining({ pointer: '/concurrency/key' })],
    }),
  );
  const meter = new Meter(10_000);
  expect(readConcurrencyKey(known, { job: { text: 'x', numbers: [] }, run }, meter)).toMatch(/^[01]$/);
  expect(() => readConcurrencyKey(known, { job, run }, meter)).toThrow(/units of work/);
  expect(() => readConcurrencyKey(known, { job: { text: 'x', numbers: [] }, run }, meter)).toThrow(
    /units of work/,
  );
});
