/** An error is certain: a definition that has one fails with every value that its schemas allow. */

import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { checkDefinition } from '@capstan/core/definition/checks/check-definition';
import { compileDefinition } from '@capstan/core/definition/compile';
import { createInputForms } from '@capstan/core/definitions/input-forms';
import { evaluateTemplate } from '@capstan/core/expression/evaluate';
import { ExpressionError } from '@capstan/core/expression/language';
import { createSchemaCompiler } from '@capstan/core/schemas/schema-compiler';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { runs } from '../../support/runs.ts';
import { names, type Schema, someObjectSchema, someSchema } from './some-schemas.ts';

const compiler = createSchemaCompiler();

const segments = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...names, 'z').map((name) => `.${name}`) },
    { weight: 1, arbitrary: fc.constantFrom('[0]', '[1]', '[*]') },
  ),
  { maxLength: 3 },
);

const path = segments.map((parts) => `steps.p.output${parts.join('')}`);

const filters = fc
  .array(fc.constantFrom('length', 'string', 'number', 'json', 'first', 'last', 'join("-")', 'bool'), {
    maxLength: 2,
  })
  .map((calls) => calls.map((call) => ` | ${call}`).join(''));

const value = fc.tuple(path, filters).map(([of, calls]) => of + calls);

const expression = fc.oneof(
  { weight: 4, arbitrary: value },
  { weight: 2, arbitrary: fc.tuple(value, fc.constantFrom('1', '"x"', 'null')).map((of) => of.join(' ?? ')) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(value, fc.constantFrom('==', '<', 'in'), fc.constantFrom('1', '"x"', 'steps.p.output.a'))
      .map((of) => `( ${of.join(' ')} )`),
  },
  { weight: 1, arbitrary: value.map((of) => `( !${of} )`) },
);

const literal = fc.constantFrom<Json>(1, 'x', null, true, [], ['x'], [1], {}, { a: 1 }, { a: 'x', b: 1 });

const template: fc.Arbitrary<Json> = fc.oneof(
  { weight: 3, arbitrary: expression.map((text) => `{{ ${text} }}`) },
  { weight: 1, arbitrary: expression.map((text) => `t {{ ${text} }}`) },
  { weight: 1, arbitrary: literal },
  {
    weight: 2,
    arbitrary: fc.dictionary(
      fc.constantFrom(...names, 'z'),
      fc.oneof(
        expression.map((text) => `{{ ${text} }}`),
        literal,
      ),
      { maxKeys: 3 },
    ),
  },
  {
    weight: 1,
    arbitrary: fc.array(
      expression.map((text) => `{{ ${text} }}`),
      { maxLength: 2 },
    ),
  },
);

function factsOf(producer: Schema, consumer: JsonObject) {
  const forms = createInputForms();
  const about = {
    name: 'x',
    version: '1',
    description: '',
    cost_model: { type: 'free', rate_usd: 0 } as const,
  };
  const known = {
    producer: forms.addSpec('producer', { ...about, input: {}, output: producer.schema }),
    consumer: forms.addSpec('consumer', { ...about, input: consumer, output: {} }),
  };
  return {
    knownCapabilities: null,
    strict: false,
    specsOf: ({ capability }: { capability?: string }) => [
      capability === 'producer' ? known.producer : known.consumer,
    ],
  };
}

it('an error means that no value of the schemas passes', () => {
  let errors = 0;
  let passed = 0;
  const property = fc.property(
    someObjectSchema,
    someSchema,
    template,
    fc.boolean(),
    fc.infiniteStream(fc.nat()),
    (producer, wanted, part, isClosed, seeds) => {
      const consumer: JsonObject = {
        type: 'object',
        properties: { x: wanted.schema },
        ...(isClosed ? { additionalProperties: false, required: ['x'] } : {}),
      };
      const definition = {
        pipeline: 'p',
        version: '1',
        steps: [
          { id: 'p', capability: 'producer' },
          { id: 'c', capability: 'consumer', input: { x: part } },
        ],
      };
      const found = checkDefinition(definition, factsOf(producer, consumer));
      const certain = found.filter(({ severity }) => severity === 'error');
      if (certain.length === 0) return void passed++;
      errors++;
      const input = compileDefinition(definition).steps[1]?.input;
      if (input === undefined) throw new Error('the step has no input');
      const check = compiler.compile(consumer);
      const isProduced = compiler.compile(producer.schema);
      const drawn = fc.sample(producer.value, { numRuns: 15, seed: seeds.next().value as number });
      for (const output of drawn) {
        expect(isProduced(output)).toEqual([]);
        const isPassed = works(input, output, check);
        if (isPassed) {
          throw new Error(JSON.stringify({ certain, output, part, from: producer.schema, to: consumer }));
        }
      }
    },
  );
  fc.assert(property, { numRuns: runs(120) });
  expect(Math.min(errors, passed)).toBeGreaterThan(0);
});

function works(
  input: Parameters<typeof evaluateTemplate>[0],
  output: Json,
  check: (value: Json) => readonly unknown[],
): boolean {
  const run = { id: 'run_1', job_id: 'job_1', attempt: 1, pipeline: 'p', version: '1' };
  try {
    const steps = { p: { output, status: 'succeeded', cost_usd: 0 } };
    return check(evaluateTemplate(input, { job: {}, run, steps })).length === 0;
  } catch (error) {
    if (error instanceof ExpressionError) return false;
    throw error;
  }
}
