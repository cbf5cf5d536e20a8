import { type ConformanceCase, echo, fails, happy, refused, succeeded, unhappy } from '../case.ts';

const script = { capabilities: { x: echo } };
function sub(name: string, steps: object[], output?: unknown) {
  return { pipeline: name, version: '1', steps, ...(output === undefined ? {} : { output }) } as never;
}

export const kindCases: readonly ConformanceCase[] = [
  happy(
    'step.id',
    'expressions refer to a step by its id, also with _ and -',
    {
      steps: [
        { id: 'first-one', capability: 'x', input: { n: 1 } },
        { id: '_second', capability: 'x', input: { n: '{{ steps["first-one"].output.n }}' } },
      ],
    },
    { script, expected: { ...succeeded, steps: { _second: { output: { n: 1 } } } } },
  ),
  unhappy(
    'step.id',
    'the id of another step is refused',
    {
      steps: [
        { id: 'a', capability: 'x' },
        { id: 'a', capability: 'x' },
      ],
    },
    refused('step_duplicate', '/steps/1/id'),
  ),
  happy(
    'step.description',
    'a description changes nothing',
    { steps: [{ id: 'a', capability: 'x', description: 'echoes' }] },
    { script, expected: succeeded },
  ),
  unhappy(
    'step.description',
    'a description that is not a text is refused',
    { steps: [{ id: 'a', capability: 'x', description: 1 }] },
    refused('type_invalid', '/steps/0/description'),
  ),
  happy(
    'step.capability',
    'a step calls its capability once',
    { steps: [{ id: 'a', capability: 'x', input: { n: 1 } }] },
    { script, expected: { ...succeeded, steps: { a: { output: { n: 1 }, attempts: 1 } }, calls: { x: 1 } } },
  ),
  unhappy(
    'step.capability',
    'without a registered instance, the run is refused',
    { steps: [{ id: 'a', capability: 'x' }] },
    { script: { capabilities: { x: { instances: [] } } }, expected: { refused: 'definition_invalid' } },
  ),
  happy(
    'step.pipeline',
    'the output of the child run is the output of the step',
    {
      steps: [
        { id: 'a', pipeline: 'conformance-double@1', input: { n: 2 } },
        { id: 'b', capability: 'x', input: { got: '{{ steps.a.output.twice }}' } },
      ],
    },
    {
      script: {
        ...script,
        pipelines: [
          sub('conformance-double', [{ id: 'c', capability: 'x', input: { n: '{{ job.n }}' } }], {
            twice: ['{{ steps.c.output.n }}', '{{ job.n }}'],
          }),
        ],
      },
      expected: { ...succeeded, steps: { b: { output: { got: [2, 2] } } }, calls: { x: 2 } },
    },
  ),
  unhappy(
    'step.pipeline',
    'if the child run fails, the step fails',
    {
      steps: [
        { id: 'a', pipeline: 'conformance-broken@1' },
        { id: 'b', capability: 'x', depends_on: ['a'] },
      ],
    },
    {
      script: {
        capabilities: { x: fails },
        pipelines: [sub('conformance-broken', [{ id: 'c', capability: 'x', retry: { max: 0 } }])],
      },
      expected: {
        outcome: 'failed',
        error: 'step_failed',
        calls: { x: 1 },
        steps: { a: { state: 'failed', error: 'sub_run_failed' }, b: 'skipped' },
      },
    },
  ),
  happy(
    'step.wait',
    'the wait ends by itself, without an output',
    {
      steps: [
        { id: 'a', wait: '100ms' },
        { id: 'b', capability: 'x', depends_on: ['a'] },
      ],
      output: '{{ steps.a.output ?? "nothing" }}',
    },
    { script, expected: { ...succeeded, output: 'nothing', calls: { x: 1 } } },
  ),
  unhappy(
    'step.wait',
    'a duration without a unit is refused',
    { steps: [{ id: 'a', wait: '30' }] },
    refused('value_invalid', '/steps/0/wait'),
  ),
  happy(
    'step.review',
    'the answer of the person is the output of the step',
    {
      steps: [
        { id: 'a', review: { title: 'Which one?' } },
        { id: 'b', capability: 'x', input: { chosen: '{{ steps.a.output.chosen }}' } },
      ],
    },
    {
      script: { ...script, reviews: { a: [{ action: 'output', output: { chosen: 2 } }] } },
      expected: { ...succeeded, steps: { b: { output: { chosen: 2 } } } },
    },
  ),
  unhappy(
    'step.review',
    'if the person rejects, the step fails',
    { steps: [{ id: 'a', review: { title: 'Go on?' } }] },
    {
      script: { reviews: { a: [{ action: 'reject', note: 'not like this' }] } },
      expected: { outcome: 'failed', steps: { a: { state: 'failed', error: 'review_rejected' } } },
    },
  ),
  happy(
    'step.set',
    'the values are the output of the step, and no instance is called for them',
    {
      steps: [
        { id: 'a', capability: 'x', input: { list: '{{ job.list }}' } },
        {
          id: 'shaped',
          set: {
            names: '{{ steps.a.output.list | where("n" > 1) | map("name") }}',
            fixed: { list: [1, '{{ job.list | length }}'] },
          },
        },
        { id: 'b', capability: 'x', input: { name: '{{ steps.shaped.output.names[0] }}' } },
      ],
      output: '{{ steps.shaped.output }}',
    },
    {
      script,
      job: {
        list: [
          { n: 1, name: 'one' },
          { n: 2, name: 'two' },
        ],
      },
      expected: {
        ...succeeded,
        output: { names: ['two'], fixed: { list: [1, 2] } },
        steps: { shaped: { attempts: 0 }, b: { output: { name: 'two' } } },
        calls: { x: 2 },
      },
    },
  ),
  happy(
    'step.set',
    'with a condition and for each item, without any call',
    {
      steps: [
        {
          id: 'each',
          set: { double: '{{ item * 2 }}', at: '{{ index }}' },
          for_each: { items: '{{ job.list }}' },
        },
        { id: 'never', when: '(job.list | length) > 5', set: { a: 1 } },
        { id: 'sum', set: { sum: '{{ steps.each.output | map("double") | sum }}' } },
      ],
      output: { sum: '{{ steps.sum.output.sum }}', never: '{{ steps.never.output ?? "skipped" }}' },
    },
    {
      job: { list: [1, 2, 3] },
      expected: {
        ...succeeded,
        output: { sum: 12, never: 'skipped' },
        steps: { never: { state: 'skipped' } },
      },
    },
  ),
  unhappy(
    'step.set',
    'a value that does not exist fails the step, and the run can continue',
    {
      steps: [
        { id: 'a', set: { x: '{{ job.missing }}' }, on_error: 'continue' },
        { id: 'b', run_if: 'any_failed', depends_on: ['a'], set: { why: '{{ steps.a.error.code }}' } },
      ],
      output: '{{ steps.b.output.why }}',
    },
    {
      expected: {
        ...succeeded,
        output: 'expression_unresolved',
        steps: { a: { state: 'failed', error: 'expression_unresolved' } },
      },
    },
  ),
  unhappy(
    'step.set',
    'a step that sets values has no input',
    { steps: [{ id: 'a', set: { x: 1 }, input: {} }] },
    refused('key_not_applicable', '/steps/0/input'),
  ),
  happy(
    'review.title',
    'the person reads the title',
    { steps: [{ id: 'a', review: { title: 'Is the picture sharp?' } }] },
    {
      script: { reviews: { a: [{ action: 'output', output: true }] } },
      expected: { ...succeeded, output: { a: true } },
    },
  ),
  unhappy(
    'review.title',
    'an empty title is refused',
    { steps: [{ id: 'a', review: { title: '' } }] },
    refused('value_invalid', '/steps/0/review/title'),
  ),
  happy(
    'review.schema',
    'an answer that matches is accepted',
    { steps: [{ id: 'a', review: { title: 'How many?', schema: { type: 'integer' } } }] },
    {
      script: { reviews: { a: [{ action: 'output', output: 3 }] } },
      expected: { ...succeeded, output: { a: 3 } },
    },
  ),
  unhappy(
    'review.schema',
    'a schema that is not an object is refused',
    { steps: [{ id: 'a', review: { title: 'How many?', schema: 'integer' } }] },
    refused('type_invalid', '/steps/0/review/schema'),
  ),
  happy(
    'review.timeout',
    'an answer in time is accepted',
    { steps: [{ id: 'a', review: { title: 'Go on?', timeout: '60s' } }] },
    { script: { reviews: { a: [{ after: '100ms', action: 'output', output: 1 }] } }, expected: succeeded },
  ),
  unhappy(
    'review.timeout',
    'without an answer in time, the step fails',
    { steps: [{ id: 'a', review: { title: 'Go on?', timeout: '200ms' } }] },
    { expected: { outcome: 'failed', steps: { a: { state: 'failed', error: 'step_timeout' } } } },
  ),
  happy(
    'review.on_timeout',
    'skip: without an answer in time, the step is skipped',
    {
      steps: [
        { id: 'a', review: { title: 'Go on?', timeout: '200ms', on_timeout: 'skip' } },
        { id: 'b', capability: 'x', depends_on: ['a'] },
      ],
    },
    { script, expected: { ...succeeded, steps: { a: 'skipped', b: 'skipped' }, calls: { x: 0 } } },
  ),
  unhappy(
    'review.on_timeout',
    'fail: without an answer in time, the step fails',
    { steps: [{ id: 'a', review: { title: 'Go on?', timeout: '200ms', on_timeout: 'fail' } }] },
    { expected: { outcome: 'failed', steps: { a: { state: 'failed', error: 'step_timeout' } } } },
  ),
];
