/** Keys together, and what happens to a run from outside while its steps are in the middle of something. */
import {
  type ConformanceCase,
  echo,
  fails,
  happy,
  onceMore,
  rejects,
  succeeded,
  takesNumber,
  unhappy,
} from '../case.ts';

function sub(name: string, part: object) {
  return { pipeline: name, version: '1', ...part } as never;
}
const slow = { replies: [{ delay: '60s' }] };
const failing = { id: 'bad', capability: 'bad', retry: { max: 0 } };

const fanOuts: readonly ConformanceCase[] = [
  happy(
    'for_each.max_parallel',
    'a review of a child run below the item counts as its own',
    {
      steps: [
        {
          id: 'a',
          pipeline: 'conformance-middle@1',
          for_each: { items: [1, 2], max_parallel: 1, enough: 1 },
          input: { n: '{{ item }}' },
        },
      ],
      output: '{{ steps.a.output }}',
    },
    {
      script: {
        pipelines: [
          sub('conformance-inner', {
            steps: [{ id: 'asks', when: 'job.n == 1', review: { title: 'Go on?' } }],
            output: '{{ job.n }}',
          }),
          sub('conformance-middle', {
            steps: [{ id: 'b', pipeline: 'conformance-inner@1', input: { n: '{{ job.n }}' } }],
            output: '{{ steps.b.output }}',
          }),
        ],
      },
      expected: {
        ...succeeded,
        output: [null, 2],
        steps: { a: { items: ['cancelled', 'succeeded'] } },
      },
    },
  ),
  unhappy(
    'for_each.max_parallel',
    'a child run that works beside its review keeps its place',
    {
      steps: [
        {
          id: 'a',
          pipeline: 'conformance-works@1',
          for_each: { items: [1, 2], max_parallel: 1 },
        },
      ],
    },
    {
      script: {
        capabilities: { x: { replies: [{ delay: '700ms', error: { status: 500, message: 'broken' } }] } },
        pipelines: [
          sub('conformance-works', {
            steps: [
              { id: 'asks', review: { title: 'Go on?' } },
              { id: 'b', capability: 'x', retry: { max: 0 } },
            ],
          }),
        ],
      },
      expected: {
        outcome: 'failed',
        error: 'step_failed',
        calls: { x: 1 },
        steps: { a: { error: 'items_failed', items: ['failed'] } },
      },
    },
  ),
  happy(
    'step.for_each',
    'items may be child runs',
    {
      steps: [
        {
          id: 'a',
          pipeline: 'conformance-each@1',
          for_each: { items: [1, 2, 3] },
          input: { n: '{{ item }}' },
        },
      ],
      output: '{{ steps.a.output }}',
    },
    {
      script: {
        capabilities: { x: echo },
        pipelines: [
          sub('conformance-each', {
            steps: [{ id: 'b', capability: 'x', input: { n: '{{ job.n }}' } }],
            output: '{{ steps.b.output.n }}',
          }),
        ],
      },
      expected: { ...succeeded, output: [1, 2, 3], calls: { x: 3 } },
    },
  ),
  happy(
    'step.for_each',
    'items may be waits',
    { steps: [{ id: 'a', wait: '50ms', for_each: { items: [1, 2] } }], output: '{{ steps.a.output }}' },
    { expected: { ...succeeded, output: [null, null], steps: { a: { items: ['succeeded', 'succeeded'] } } } },
  ),
  happy(
    'step.for_each',
    'items may be reviews, one after the other',
    {
      steps: [{ id: 'a', review: { title: 'How many?' }, for_each: { items: ['p', 'q'], max_parallel: 1 } }],
      output: '{{ steps.a.output }}',
    },
    {
      script: {
        reviews: {
          a: [
            { action: 'output', output: 4 },
            { action: 'output', output: 5 },
          ],
        },
      },
      expected: { ...succeeded, steps: { a: { items: ['succeeded', 'succeeded'] } } },
    },
  ),
  happy(
    'step.for_each',
    'an item that a person skips is null in the output',
    {
      steps: [
        {
          id: 'a',
          capability: 'x',
          optional: true,
          for_each: { items: '{{ job.list }}' },
          input: { n: '{{ item }}' },
        },
      ],
      output: '{{ steps.a.output }}',
    },
    {
      job: { list: [1, 'two', 3] },
      script: { capabilities: { x: takesNumber }, reviews: { a: [{ action: 'skip' }] } },
      expected: {
        ...succeeded,
        output: [{ n: 1 }, null, { n: 3 }],
        steps: { a: { state: 'succeeded', items: ['succeeded', 'skipped', 'succeeded'] } },
      },
    },
  ),
  happy(
    'step.for_each',
    'each item is corrected separately',
    {
      steps: [
        {
          id: 'a',
          capability: 'x',
          escalate: { repair: 'apply' },
          for_each: { items: '{{ job.list }}' },
          input: { n: '{{ item }}' },
        },
      ],
      output: '{{ steps.a.output }}',
    },
    {
      job: { list: ['1', 2, '3'] },
      script: { capabilities: { x: takesNumber } },
      expected: { ...succeeded, output: [{ n: 1 }, { n: 2 }, { n: 3 }], calls: { x: 3 } },
    },
  ),
  unhappy(
    'step.for_each',
    'with on_error: continue, the run continues after items failed',
    {
      steps: [
        {
          id: 'a',
          capability: 'bad',
          for_each: { items: [1, 2], max_parallel: 1 },
          retry: { max: 0 },
          on_error: 'continue',
        },
        {
          id: 'b',
          capability: 'x',
          run_if: 'all_done',
          input: { why: '{{ steps.a.error.code }}', list: '{{ steps.a.output ?? "none" }}' },
        },
      ],
    },
    {
      script: { capabilities: { x: echo, bad: fails } },
      expected: {
        ...succeeded,
        calls: { bad: 1, x: 1 },
        steps: { a: 'failed', b: { output: { why: 'items_failed', list: 'none' } } },
      },
    },
  ),
  happy(
    'step.when',
    'a false condition also skips a step with for_each',
    {
      steps: [
        { id: 'a', capability: 'x', when: 'job.many', for_each: { items: '{{ job.list }}' } },
        {
          id: 'b',
          capability: 'x',
          depends_on: ['a'],
          run_if: 'all_done',
          input: { was: '{{ steps.a.status }}' },
        },
      ],
    },
    {
      job: { many: false },
      script: { capabilities: { x: echo } },
      expected: { ...succeeded, steps: { a: 'skipped', b: { output: { was: 'skipped' } } } },
    },
  ),
];

const interrupted: readonly ConformanceCase[] = [
  unhappy(
    'step.review',
    'a cancel ends steps that wait for a review, a time or a child run',
    {
      steps: [
        { id: 'asks', review: { title: 'Go on?' } },
        { id: 'waits', wait: '1h' },
        { id: 'runs', pipeline: 'conformance-slow@1' },
        { id: 'refused', capability: 'picky' },
      ],
    },
    {
      script: {
        capabilities: { x: slow, picky: rejects },
        pipelines: [sub('conformance-slow', { steps: [{ id: 'b', capability: 'x' }] })],
        control: [{ at: '1500ms', action: 'cancel' }],
      },
      expected: {
        outcome: 'cancelled',
        steps: { asks: 'cancelled', waits: 'cancelled', runs: 'cancelled', refused: 'cancelled' },
      },
    },
  ),
  unhappy(
    'step.on_error',
    'a failure ends waiting steps: refused steps fail, the others are cancelled',
    {
      steps: [
        { id: 'asks', review: { title: 'Go on?' } },
        { id: 'waits', wait: '1h' },
        { id: 'refused', capability: 'picky' },
        { id: 'later', wait: '5s' },
        { ...failing, depends_on: ['later'] },
      ],
    },
    {
      script: { capabilities: { bad: fails, picky: rejects } },
      expected: {
        outcome: 'failed',
        error: 'step_failed',
        steps: {
          asks: 'cancelled',
          waits: 'cancelled',
          later: 'succeeded',
          bad: 'failed',
          refused: { state: 'failed', error: 'ladder_exhausted' },
        },
      },
    },
  ),
  unhappy(
    'pipeline.timeout',
    'a run also exceeds its timeout while its steps wait',
    {
      steps: [
        { id: 'asks', review: { title: 'Go on?' } },
        { id: 'waits', wait: '1h' },
      ],
      timeout: '500ms',
    },
    {
      expected: { outcome: 'failed', error: 'run_timeout', steps: { asks: 'cancelled', waits: 'cancelled' } },
    },
  ),
  happy(
    'pipeline.timeout',
    'the time of a run does not pass while it is paused',
    {
      steps: [
        { id: 'a', capability: 'x' },
        { id: 'b', capability: 'x', depends_on: ['a'] },
      ],
      timeout: '3s',
    },
    {
      script: {
        capabilities: { x: { replies: [{ times: 1, delay: '600ms' }, {}] } },
        control: [
          { at: '200ms', action: 'pause' },
          { at: '4500ms', action: 'resume' },
        ],
      },
      expected: { outcome: 'succeeded', steps: { a: 'succeeded', b: 'succeeded' } },
    },
  ),
  unhappy(
    'pipeline.steps',
    'a paused run may be cancelled',
    {
      steps: [
        { id: 'a', wait: '200ms' },
        { id: 'b', capability: 'x', depends_on: ['a'] },
      ],
    },
    {
      script: {
        capabilities: { x: echo },
        control: [
          { at: '0ms', action: 'pause' },
          { at: '800ms', action: 'cancel' },
        ],
      },
      expected: { outcome: 'cancelled', steps: { b: 'cancelled' }, calls: { x: 0 } },
    },
  ),
  unhappy(
    'pipeline.budget_ceiling_usd',
    'child runs spend the budget of the run, and continue when it is raised',
    {
      steps: [{ id: 'a', pipeline: 'conformance-paid@1', for_each: { items: [1, 2, 3], max_parallel: 1 } }],
      budget_ceiling_usd: 1,
    },
    {
      script: {
        capabilities: { x: { cost_model: { type: 'per_call', rate_usd: 0.6 } } },
        pipelines: [sub('conformance-paid', { steps: [{ id: 'b', capability: 'x' }] })],
        budget_reviews: [{ action: 'raise', budget_ceiling_usd: 2 }],
      },
      expected: { ...succeeded, calls: { x: 3 } },
    },
  ),
  unhappy(
    'pipeline.budget_ceiling_usd',
    'a person may cancel a run that waits for budget',
    {
      steps: [
        { id: 'a', capability: 'x' },
        { id: 'b', capability: 'x', depends_on: ['a'] },
      ],
      budget_ceiling_usd: 1,
    },
    {
      script: {
        capabilities: { x: { cost_model: { type: 'per_call', rate_usd: 0.6 } } },
        budget_reviews: [{ action: 'cancel' }],
      },
      expected: { outcome: 'cancelled', steps: { a: 'succeeded', b: 'cancelled' }, calls: { x: 1 } },
    },
  ),
];

const answers: readonly ConformanceCase[] = [
  happy(
    'step.retry',
    'an answer that is not JSON is retried',
    { steps: [{ id: 'a', capability: 'x', retry: onceMore }] },
    {
      script: { capabilities: { x: { replies: [{ times: 1, garbage: true }, {}] } } },
      expected: { ...succeeded, steps: { a: { attempts: 2 } } },
    },
  ),
  happy(
    'step.retry',
    'a lost connection is retried',
    { steps: [{ id: 'a', capability: 'x', retry: onceMore }] },
    {
      script: { capabilities: { x: { replies: [{ times: 1, lost: true }, {}] } } },
      expected: { ...succeeded, steps: { a: { attempts: 2 } }, calls: { x: 2 } },
    },
  ),
  unhappy(
    'step.escalate',
    "an output that does not match the capability's schema is not retried",
    { steps: [{ id: 'a', capability: 'x', escalate: { enabled: false } }] },
    {
      script: {
        capabilities: { x: { output: { type: 'object', required: ['n'] }, replies: [{ output: { m: 1 } }] } },
      },
      expected: { outcome: 'failed', steps: { a: { error: 'output_invalid' } }, calls: { x: 1 } },
    },
  ),
  unhappy(
    'step.escalate',
    "if a person's correction does not help, the review opens again",
    { steps: [{ id: 'a', capability: 'x', input: { n: 0 } }] },
    {
      script: {
        capabilities: {
          x: { replies: [{ when: 'input.n < 2', error: { status: 422, message: 'n is small' } }, {}] },
        },
        reviews: {
          a: [
            { action: 'edit', input: { n: 1 } },
            { action: 'edit', input: { n: 2 } },
          ],
        },
      },
      expected: { ...succeeded, steps: { a: { output: { n: 2 }, attempts: 3 } }, calls: { x: 3 } },
    },
  ),
  unhappy(
    'step.pipeline',
    'if the child pipeline refuses the job, the step fails',
    { steps: [{ id: 'a', pipeline: 'conformance-strict@1', input: { n: '{{ job.n }}' } }] },
    {
      job: { n: 'one' },
      script: {
        capabilities: { x: echo },
        pipelines: [
          sub('conformance-strict', {
            job_schema: { type: 'object', properties: { n: { type: 'number' } } },
            steps: [{ id: 'b', capability: 'x' }],
          }),
        ],
      },
      expected: {
        outcome: 'failed',
        steps: { a: { state: 'failed', error: 'job_invalid' } },
        calls: { x: 0 },
      },
    },
  ),
];

export const combinedCases: readonly ConformanceCase[] = [...fanOuts, ...interrupted, ...answers];
