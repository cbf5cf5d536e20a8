import { type ConformanceCase, fails, happy, onceMore, refused, succeeded, unhappy } from '../case.ts';

/** Answers `fast` at once, and everything else after a time that no run of a case waits for. */
const uneven = {
  capabilities: {
    x: {
      max_concurrency: 10,
      replies: [
        { when: 'input.v == "fast"', output: { v: 'fast', sure: true } },
        { when: 'input.v == "vague"', output: { v: 'vague', sure: false } },
        { when: 'input.v == "broken"', error: { status: 500, message: 'broken' } },
        { delay: '5m', output: { v: 'slow', sure: true } },
      ],
    },
  },
};

function call(v: string, more: object = {}) {
  return { id: v, capability: 'x', input: { v }, retry: { max: 0 }, ...more };
}

function join(depends_on: readonly string[], first = 1, more: object = {}) {
  return { id: 'join', first, depends_on, set: { by: '{{ steps.fast.output.v ?? "none" }}' }, ...more };
}

function items(for_each: object, more: object = {}) {
  return {
    steps: [{ id: 'a', capability: 'x', for_each, input: { v: '{{ item }}' }, retry: { max: 0 }, ...more }],
    output: '{{ steps.a.output }}',
  };
}

export const raceCases: readonly ConformanceCase[] = [
  happy(
    'step.first',
    'the first success starts the step; the others, and what only they need, are cancelled',
    {
      steps: [
        call('fast'),
        call('slow'),
        { id: 'after', depends_on: ['slow'], set: { never: true } },
        join(['fast', 'after']),
      ],
      output: '{{ steps.join.output.by }}',
    },
    {
      script: uneven,
      expected: {
        ...succeeded,
        output: 'fast',
        steps: {
          fast: { state: 'succeeded' },
          slow: { state: 'cancelled', error: 'enough' },
          after: { state: 'cancelled', error: 'enough' },
          join: { state: 'succeeded' },
        },
      },
    },
  ),
  happy(
    'step.first',
    'a failure is none of the race while enough may succeed, whatever on_error the run has for others',
    { steps: [call('broken'), call('fast'), join(['broken', 'fast'])], output: '{{ steps.join.output.by }}' },
    {
      script: uneven,
      expected: { ...succeeded, output: 'fast', steps: { broken: { state: 'failed' } } },
    },
  ),
  happy(
    'step.first',
    'a step that another one needs too is not cancelled',
    {
      steps: [
        call('fast'),
        { id: 'soon', wait: '300ms' },
        join(['fast', 'soon']),
        { id: 'other', depends_on: ['soon'], set: { done: true } },
      ],
    },
    { script: uneven, expected: { ...succeeded, steps: { soon: { state: 'succeeded' } } } },
  ),
  happy(
    'step.first',
    'losers that wait, for time or for a person, are cancelled',
    {
      steps: [
        call('fast'),
        { id: 'later', wait: '10m' },
        { id: 'person', review: { title: 'Which one?' } },
        join(['fast', 'later', 'person']),
      ],
    },
    {
      script: uneven,
      expected: {
        ...succeeded,
        steps: {
          later: { state: 'cancelled', error: 'enough' },
          person: { state: 'cancelled', error: 'enough' },
        },
      },
    },
  ),
  unhappy(
    'step.first',
    'when too few can succeed, the step fails at once and the others are cancelled',
    { steps: [call('broken'), call('slow'), call('fast'), join(['broken', 'slow', 'fast'], 3)] },
    {
      script: uneven,
      expected: {
        outcome: 'failed',
        steps: { slow: { state: 'cancelled' }, join: { state: 'failed', error: 'not_enough' } },
      },
    },
  ),
  unhappy(
    'step.first',
    'more than there are is refused',
    { steps: [call('fast'), join(['fast'], 2)] },
    refused('race_unreachable', '/steps/1/first'),
  ),
  unhappy(
    'step.first',
    'together with run_if it is refused',
    { steps: [call('fast'), call('slow'), join(['fast', 'slow'], 1, { run_if: 'all_done' })] },
    refused('race_conflict', '/steps/2/first'),
  ),
  unhappy(
    'step.first',
    'a step that may be called off is not inline',
    { steps: [call('fast', { dispatch: 'inline', retry: onceMore }), call('slow'), join(['fast', 'slow'])] },
    refused('dispatch_conflict', '/steps/0/dispatch'),
  ),
  happy(
    'for_each.enough',
    'the first items that succeed are enough; the output of the others is null',
    items({ items: ['slow', 'fast', 'slow', 'fast'], enough: 2 }),
    {
      script: uneven,
      expected: {
        ...succeeded,
        output: [null, { v: 'fast', sure: true }, null, { v: 'fast', sure: true }],
        steps: { a: { items: ['cancelled', 'succeeded', 'cancelled', 'succeeded'] } },
      },
    },
  ),
  happy(
    'for_each.enough',
    'items that have not begun never do, and failures are none as long as enough may succeed',
    items({ items: ['broken', 'fast', 'slow', 'slow'], enough: 1, max_parallel: 1 }),
    {
      script: uneven,
      expected: {
        ...succeeded,
        calls: { x: 2 },
        output: [null, { v: 'fast', sure: true }, null, null],
      },
    },
  ),
  unhappy(
    'for_each.enough',
    'when too few can succeed, the step fails at once',
    items({ items: ['broken', 'slow', 'broken'], enough: 2 }),
    { script: uneven, expected: { outcome: 'failed', steps: { a: { error: 'not_enough' } } } },
  ),
  unhappy(
    'for_each.enough',
    'more than the list has is refused',
    items({ items: ['fast'], enough: 2 }),
    refused('race_unreachable', '/steps/0/for_each/enough'),
  ),
  happy(
    'enough.count',
    'so many answers are enough',
    items({ items: ['fast', 'slow'], enough: { count: 1 } }),
    { script: uneven, expected: { ...succeeded, steps: { a: { items: ['succeeded', 'cancelled'] } } } },
  ),
  unhappy(
    'enough.count',
    'a list that turns out to be too short fails the step before any item begins',
    items({ items: '{{ job.list }}', enough: { count: 2 } }),
    {
      script: uneven,
      job: { list: ['fast'] },
      expected: { outcome: 'failed', calls: { x: 0 }, steps: { a: { error: 'not_enough' } } },
    },
  ),
  happy(
    'enough.if',
    'only answers that meet the condition count',
    items({ items: ['vague', 'fast', 'slow'], enough: { if: 'output.sure' } }),
    {
      script: uneven,
      expected: {
        ...succeeded,
        output: [{ v: 'vague', sure: false }, { v: 'fast', sure: true }, null],
        steps: { a: { items: ['succeeded', 'succeeded', 'cancelled'] } },
      },
    },
  ),
  unhappy(
    'enough.if',
    'an answer for which it has no value does not count, and the error shows why',
    items({ items: ['fast', 'vague'], enough: { if: 'output.confidence > 0.8' } }),
    { script: uneven, expected: { outcome: 'failed', steps: { a: { error: 'not_enough' } } } },
  ),
  unhappy(
    'enough.if',
    'a condition over something else is refused',
    items({ items: ['fast'], enough: { if: 'answer.sure' } }),
    refused('root_unknown', '/steps/0/for_each/enough/if'),
  ),
  happy(
    'step.when',
    'with item or index, it is judged for each item: those that are left out are skipped, and their output is null',
    items({ items: ['slow', 'fast', 'slow'] }, { when: 'item == "fast" && index < job.most' }),
    {
      script: uneven,
      job: { most: 2 },
      expected: {
        ...succeeded,
        output: [null, { v: 'fast', sure: true }, null],
        calls: { x: 1 },
        steps: { a: { state: 'succeeded', items: ['skipped', 'succeeded', 'skipped'] } },
      },
    },
  ),
  happy(
    'step.when',
    'items that it skips are none of the enough',
    items({ items: ['slow', 'fast', 'fast'], enough: 2 }, { when: 'index > 0' }),
    { script: uneven, expected: { ...succeeded, calls: { x: 2 } } },
  ),
  unhappy(
    'step.when',
    'a condition that has no value for one item fails the step before any begins',
    items({ items: [{ v: 1 }, {}] }, { when: 'item.v == 1', input: {} }),
    { script: { capabilities: { x: fails } }, expected: { outcome: 'failed', calls: { x: 0 } } },
  ),
];
