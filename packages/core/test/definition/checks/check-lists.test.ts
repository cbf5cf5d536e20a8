/** Findings about lists that an expression needs whole, and that are or may be too large for it. */
import { describe, expect, it } from 'vitest';
import type { PipelineDefinition, StepDefinition } from '../../../src/contracts/pipeline.ts';
import type { Json, JsonObject } from '../../../src/contracts/primitives.ts';
import { checkDefinition } from '../../../src/definition/checks/check-definition.ts';
import type { DefinitionFacts } from '../../../src/definition/checks/finding.ts';
import { aDefinition, aStep } from './a-definition.ts';
import { object, someFacts, text } from './some-facts.ts';

/** 1,536 numbers take at least 3 KiB. */
const vector = { type: 'array', items: { type: 'number' }, minItems: 1_536 };
const capabilities = {
  embed: { output: object({ name: text, vector }) },
  write: { output: object({ text: { type: 'string', minLength: 20_000 } }) },
  rate: { output: object({ stars: { type: 'integer' }, mood: { enum: ['good', 'bad'] } }) },
  say: { output: object({ text }) },
  sink: {},
};

function listOf(length: number): Json[] {
  return Array.from({ length }, (_, index) => index);
}

interface Case {
  readonly capability?: string;
  readonly count?: number;
  /** Of the step that reads the list. */
  readonly reader?: Partial<StepDefinition>;
  readonly more?: Partial<StepDefinition>;
  readonly over?: Partial<PipelineDefinition>;
  readonly facts?: Partial<DefinitionFacts>;
}

/** Severities and pointers of what is found of a step `m` with items, and of one that reads its list. */
function found({ capability = 'embed', count = 6_000, reader, more, over, facts }: Case): string[] {
  const job: JsonObject = { names: listOf(count) };
  const definition = aDefinition({
    steps: [
      aStep({ id: 'm', capability, for_each: { items: '{{ job.names }}' }, ...more }),
      aStep({ id: 'b', capability: 'sink', input: {}, ...reader }),
    ],
    ...over,
  });
  return checkDefinition(definition, { ...someFacts(capabilities), job, ...facts })
    .filter(({ code }) => code === 'list_limit')
    .map(({ severity, pointer }) => `${severity} ${pointer}`);
}

const whole = { input: { all: '{{ steps.m.output }}' } };

describe('a list that is too large by the schema of its items', () => {
  it.each<[string, Partial<StepDefinition>, string[]]>([
    ['as an input', whole, ['/steps/1/input/all']],
    [
      'inside of an input',
      { input: { a: [{ b: 'x {{ steps.m.output | json }}' }] } },
      ['/steps/1/input/a/0/b'],
    ],
    [
      'sorted, and its length',
      { input: { n: '{{ steps.m.output | length }}', s: '{{ steps.m.output | sort_by("name") | length }}' } },
      ['/steps/1/input/s'],
    ],
    ['joined', { input: { s: '{{ steps.m.output | json | length }}' } }, ['/steps/1/input/s']],
    ['as all of its items', { input: { s: '{{ steps.m.output[*] }}' } }, ['/steps/1/input/s']],
    ['in a condition', { when: '[] == steps.m.output' }, ['/steps/1/when']],
    [
      'as a filtered list of items',
      { for_each: { items: '{{ steps.m.output | where("name" == "x") }}' } },
      ['/steps/1/for_each/items'],
    ],
    [
      'as values that are set',
      { capability: undefined, set: { all: '{{ steps.m.output | reverse }}' } },
      ['/steps/1/set/all'],
    ],
    [
      'as its length, an item, or a field of each',
      {
        input: {
          a: '{{ steps.m.output | length }}',
          b: '{{ steps.m.output[3] }}',
          c: '{{ steps.m.output[*].name }}',
          d: '{{ steps.m.output | map("name") | first }}',
        },
      },
      [],
    ],
    ['item by item', { for_each: { items: '{{ steps.m.output }}' }, input: { v: '{{ item.vector }}' } }, []],
    ['not at all', { depends_on: ['m'], input: { s: '{{ steps.m.status }}' } }, []],
  ])('is found where it is read %s', (_, { input, ...reader }, pointers) => {
    expect(found({ reader: { ...reader, ...(input === undefined ? {} : { input }) } })).toEqual(
      pointers.map((pointer) => `warning ${pointer}`),
    );
  });

  it('is found in the output, in place of a reference', () => {
    const over = {
      output: {
        n: '{{ steps.m.output | length }}',
        as_it_is: '{{ steps.m.output }}',
        all: '{{ steps.m.output | reverse }}',
      },
    };
    expect(found({ over })).toEqual(['warning /output/all']);
  });

  it.each<[string, number, Case, string[]]>([
    ['one item less than too many fits for sure', 5_420, {}, ['note']],
    ['one item more does not', 5_421, {}, ['warning']],
    [
      'tolerated items may have no output',
      5_421,
      { more: { for_each: { items: '{{ job.names }}', tolerate: 1 } } },
      ['note'],
    ],
    ['an unknown number may be too large', 0, { facts: { job: undefined } }, ['note']],
    [
      'a written number',
      0,
      { capability: 'write', more: { for_each: { items: listOf(839) } }, facts: { job: undefined } },
      ['warning'],
    ],
    [
      'fields of more than 128 MiB',
      6_800,
      { capability: 'write', reader: { input: { a: '{{ steps.m.output[*].text }}' } } },
      ['warning'],
    ],
  ])('%s', (_, count, more, severities) => {
    expect(found({ reader: whole, count, ...more }).map((one) => one.split(' ')[0])).toEqual(severities);
  });

  it('is found along a chain of lists', () => {
    const definition = aDefinition({
      steps: [
        aStep({ id: 'm', capability: 'say', for_each: { items: '{{ job.names }}' } }),
        aStep({ id: 'v', capability: 'embed', for_each: { items: '{{ steps.m.output }}' } }),
        aStep({ id: 'b', capability: 'sink', input: { all: '{{ steps.v.output }}' } }),
      ],
    });
    const facts = { ...someFacts(capabilities), job: { names: listOf(6_000) } };
    const [finding] = checkDefinition(definition, facts).filter(({ code }) => code === 'list_limit');
    expect(finding).toMatchObject({
      severity: 'warning',
      pointer: '/steps/2/input/all',
      message:
        '6,000 items take at least 18,570,000 bytes by their schema; at most 16,777,216 may be read as a whole (steps.v.output); else the step fails',
      suggestion: expect.stringContaining('[*].name'),
    });
  });
});

describe('a list of unknown size', () => {
  const former = (bytes: number) => ({ itemBytesOf: () => ({ run_id: 'run_1', bytes }) });

  it.each<[string, Case, string[]]>([
    ['has a note when it has many items', { capability: 'say', count: 1_025 }, ['note']],
    ['has none with a hundred', { capability: 'say', count: 100 }, []],
    ['has none when its number is unknown', { capability: 'say', facts: { job: undefined } }, []],
    ['has none when nothing is known of its items', { capability: 'sink', count: 100 }, []],
    ['has none when every item is small', { capability: 'rate', count: 10_000 }, []],
    [
      'has a warning by an earlier run',
      { capability: 'say', count: 200, facts: former(100_000) },
      ['warning'],
    ],
    ['has none by an earlier run', { capability: 'say', count: 10_000, facts: former(900) }, []],
    [
      'of fields has a warning by an earlier run',
      {
        capability: 'say',
        count: 2_000,
        facts: former(100_000),
        reader: { input: { a: '{{ steps.m.output[*].text }}' } },
      },
      ['warning'],
    ],
    [
      'of fields has none by an earlier run',
      {
        capability: 'say',
        count: 200,
        facts: former(100_000),
        reader: { input: { a: '{{ steps.m.output[*].text }}' } },
      },
      [],
    ],
  ])('%s', (_, { reader = whole, ...one }, severities) => {
    expect(found({ reader, ...one }).map((told) => told.split(' ')[0])).toEqual(severities);
  });
});
