import { expect, it } from 'vitest';
import type { PipelineDefinition } from '../../../src/contracts/pipeline.ts';
import { checkDefinition } from '../../../src/definition/checks/check-definition.ts';
import { aDefinition, aStep } from './a-definition.ts';

const secrets = new Map([
  ['web-token', { name: 'web-token', bytes: 40, capabilities: ['publish.*'] }],
  ['other', { name: 'other', bytes: 50, capabilities: ['*'] }],
  ['long', { name: 'long', bytes: 65_497, capabilities: ['*'] }],
]);

function findingsOf(definition: PipelineDefinition, known: typeof secrets | undefined = secrets) {
  return checkDefinition(definition, { knownCapabilities: null, strict: false, secrets: known });
}

function publish(input: Record<string, string>) {
  return aDefinition({ steps: [aStep({ capability: 'publish.web', input })] });
}

it('a secret alone in its braces, whole or inside a text, has no finding', () => {
  const input = { a: '{{ secrets.web-token }}', b: 'Bearer {{ secrets["web-token"] }} {{ secrets.other }}' };
  expect(findingsOf(publish(input))).toEqual([]);
});

it('a name that the project lacks is an error with the names it has', () => {
  expect(findingsOf(publish({ a: '{{ secrets.web-tokn }}' }))).toEqual([
    {
      severity: 'error',
      code: 'secret_unknown',
      pointer: '/steps/0/input/a',
      offset: 3,
      message: 'the project has no secret web-tokn; there are long, other, web-token',
      suggestion: expect.stringContaining('web-token'),
    },
  ]);
  expect(findingsOf(publish({ a: '{{ secrets.x }}' }), new Map())).toMatchObject([
    { message: 'the project has no secret x; it has none' },
  ]);
});

it('secrets that are longer together than answers are searched for are an error of their step', () => {
  const [token, long] = ['{{ secrets.web-token }}', '{{ secrets.long }}'];
  expect(findingsOf(publish({ a: token, b: long }))).toEqual([
    {
      severity: 'error',
      code: 'secrets_too_large',
      pointer: '/steps/0/input/a',
      offset: 3,
      message: 'the step names 2 secrets of 65537 bytes together, and answers are searched for at most 65536',
      suggestion: undefined,
    },
  ]);
  expect(findingsOf(publish({ a: long, b: `again ${long}`, c: long }))).toEqual([]);
  const steps = [token, long].map((a, at) =>
    aStep({ id: `s${at}`, capability: 'publish.web', input: { a } }),
  );
  expect(findingsOf(aDefinition({ steps }))).toEqual([]);
});

it('without the secrets of a project, names are not checked, but places are', () => {
  const facts = { knownCapabilities: null, strict: false };
  expect(checkDefinition(publish({ a: '{{ secrets.x }}' }), facts)).toEqual([]);
  expect(checkDefinition(publish({ a: '{{ secrets.x | upper }}' }), facts)).toMatchObject([
    { code: 'secret_misplaced' },
  ]);
});

it('a capability that is not in the list of the secret is an error', () => {
  const step = aStep({ capability: 'mail', input: { a: '{{ secrets.web-token }}' } });
  expect(findingsOf(aDefinition({ steps: [step] }))).toMatchObject([
    {
      severity: 'error',
      code: 'secret_not_allowed',
      message: 'mail may not receive the secret web-token, which is for publish.*',
    },
  ]);
});

const token = '{{ secrets.web-token }}';

it.each<[string, Partial<PipelineDefinition>, string]>([
  ['the output', { output: { a: token } }, '/output/a'],
  ['a condition', { steps: [aStep({ when: 'secrets.web-token == "x"' })] }, '/steps/0/when'],
  ['for_each', { steps: [aStep({ for_each: { items: [token] } })] }, '/steps/0/for_each/items/0'],
  ['values', { steps: [{ id: 'a', set: { a: token } }] }, '/steps/0/set/a'],
  ['a review', { steps: [{ id: 'a', review: { title: 't' }, input: { a: token } }] }, '/steps/0/input/a'],
  ['a child run', { steps: [{ id: 'a', pipeline: 'p@1', input: { a: token } }] }, '/steps/0/input/a'],
  ['the concurrency key', { concurrency: { key: token, limit: 1 } }, '/concurrency/key'],
  [
    'a filter',
    { steps: [aStep({ capability: 'publish.web', input: { a: '{{ secrets.web-token | json }}' } })] },
    '/steps/0/input/a',
  ],
  [
    'an operator',
    { steps: [aStep({ capability: 'publish.web', input: { a: '{{ job.a ?? secrets.web-token }}' } })] },
    '/steps/0/input/a',
  ],
  [
    'a path',
    { steps: [aStep({ capability: 'publish.web', input: { a: '{{ secrets }}' } })] },
    '/steps/0/input/a',
  ],
])('a secret in %s is an error', (_, definition, pointer) => {
  expect(findingsOf(aDefinition(definition))).toContainEqual(
    expect.objectContaining({ severity: 'error', code: 'secret_misplaced', pointer }),
  );
});
