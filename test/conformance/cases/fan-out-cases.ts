import { type ConformanceCase, echo, happy, refused, succeeded, unhappy } from '../case.ts';

const script = { capabilities: { x: echo } };
/** Refuses the items 2 and 4. */
const picky = {
  capabilities: {
    x: {
      replies: [{ when: 'input.v == 2 || input.v == 4', error: { status: 500, message: 'not that' } }, {}],
    },
  },
};
function step(for_each: object, input: object = { v: '{{ item }}' }) {
  return {
    steps: [{ id: 'a', capability: 'x', for_each, input, retry: { max: 0 } }],
  };
}

export const fanOutCases: readonly ConformanceCase[] = [
  happy(
    'step.for_each',
    'a step runs once per item; its output is the list of outputs, in item order',
    {
      steps: [
        {
          id: 'a',
          capability: 'x',
          for_each: { items: '{{ job.list }}' },
          input: { v: '{{ item.v }}', i: '{{ index }}' },
        },
        {
          id: 'b',
          capability: 'x',
          input: { all: '{{ steps.a.output[*].v }}', last: '{{ steps.a.output | last }}' },
        },
      ],
    },
    {
      script,
      job: { list: [{ v: 'p' }, { v: 'q' }, { v: 'r' }] },
      expected: {
        ...succeeded,
        calls: { x: 4 },
        steps: {
          a: { state: 'succeeded', items: ['succeeded', 'succeeded', 'succeeded'] },
          b: { output: { all: ['p', 'q', 'r'], last: { v: 'r', i: 2 } } },
        },
      },
    },
  ),
  happy(
    'step.for_each',
    'with an empty list, the step succeeds at once, and its output is an empty list',
    { ...step({ items: [] }), output: '{{ steps.a.output }}' },
    { script, expected: { ...succeeded, output: [], calls: { x: 0 } } },
  ),
  unhappy(
    'step.for_each',
    'if one item fails, the step and the run fail',
    step({ items: [1, 2, 3], max_parallel: 1 }),
    {
      script: picky,
      expected: {
        outcome: 'failed',
        error: 'step_failed',
        calls: { x: 2 },
        steps: { a: { state: 'failed', error: 'items_failed', items: ['succeeded', 'failed'] } },
      },
    },
  ),
  happy(
    'for_each.items',
    'a list may hold expressions',
    { ...step({ items: ['{{ job.first }}', 'b'] }), output: '{{ steps.a.output }}' },
    { script, job: { first: 'a' }, expected: { ...succeeded, output: [{ v: 'a' }, { v: 'b' }] } },
  ),
  unhappy('for_each.items', 'if items is not a list, the step fails', step({ items: '{{ job.list }}' }), {
    script,
    job: { list: 'a, b' },
    expected: {
      outcome: 'failed',
      steps: { a: { state: 'failed', error: 'expression_unresolved' } },
      calls: { x: 0 },
    },
  }),
  unhappy(
    'for_each.items',
    'with more than 10,000 items, the step fails',
    step({ items: '{{ job.list }}' }),
    {
      script,
      job: { list: Array.from({ length: 10_001 }, () => 0) },
      expected: {
        outcome: 'failed',
        steps: { a: { state: 'failed', error: 'too_many_items' } },
        calls: { x: 0 },
      },
    },
  ),
  happy(
    'for_each.max_parallel',
    'items that are child runs with a review keep no place: the reviews of all are open at once',
    {
      steps: [
        {
          id: 'a',
          pipeline: 'conformance-asks@1',
          for_each: { items: [1, 2, 3, 4, 5], max_parallel: 2, enough: 1 },
          input: { n: '{{ item }}' },
        },
      ],
      output: '{{ steps.a.output }}',
    },
    {
      script: {
        pipelines: [
          {
            pipeline: 'conformance-asks',
            version: '1',
            steps: [
              { id: 'asks', when: 'job.n < 5', review: { title: 'Go on?' } },
              {
                id: 'last',
                when: 'job.n == 5',
                review: { title: 'Go on?', timeout: '200ms', on_timeout: 'skip' },
              },
            ],
            output: '{{ job.n }}',
          },
        ],
      },
      expected: {
        ...succeeded,
        output: [null, null, null, null, 5],
        steps: { a: { items: ['cancelled', 'cancelled', 'cancelled', 'cancelled', 'succeeded'] } },
      },
    },
  ),
  happy(
    'for_each.max_parallel',
    'with 1, one item runs after the other',
    { ...step({ items: [1, 3, 5], max_parallel: 1 }), output: '{{ steps.a.output[*].v }}' },
    { script, expected: { ...succeeded, output: [1, 3, 5] } },
  ),
  unhappy(
    'for_each.max_parallel',
    '0 is refused',
    step({ items: [1], max_parallel: 0 }),
    refused('value_invalid', '/steps/0/for_each/max_parallel'),
  ),
  happy(
    'for_each.tolerate',
    'a tolerated failed item is null in the output',
    { ...step({ items: [1, 2, 3], tolerate: 1 }), output: '{{ steps.a.output }}' },
    {
      script: picky,
      expected: {
        ...succeeded,
        output: [{ v: 1 }, null, { v: 3 }],
        steps: { a: { state: 'succeeded', items: ['succeeded', 'failed', 'succeeded'] } },
      },
    },
  ),
  unhappy(
    'for_each.tolerate',
    'with more failures than tolerated, the step fails',
    step({ items: [1, 2, 3, 4, 5], tolerate: 1, max_parallel: 1 }),
    {
      script: picky,
      expected: {
        outcome: 'failed',
        calls: { x: 4 },
        steps: { a: { error: 'items_failed', items: ['succeeded', 'failed', 'succeeded', 'failed'] } },
      },
    },
  ),
];
