/** Steps in rounds, until a condition holds. */
import { type ConformanceCase, echo, happy, refused, type Script, succeeded, unhappy } from '../case.ts';

const script = { capabilities: { x: echo } };
/** Answers `running` twice, then `done`. */
const job: Script = {
  capabilities: {
    x: {
      replies: [{ times: 2, output: { status: 'running' } }, { output: { status: 'done', file: 'a.mp4' } }],
    },
  },
};
const isDone = 'round.output.status == "done"';

function step(repeat: object, rest: object = {}) {
  return { steps: [{ id: 'a', capability: 'x', repeat, ...rest }], output: '{{ steps.a.output }}' };
}
function sub(name: string, part: object) {
  return { pipeline: name, version: '1', ...part } as never;
}

const rounds: readonly ConformanceCase[] = [
  happy(
    'step.repeat',
    'a call is made again until the condition holds; its output is the last one',
    {
      steps: [
        { id: 'a', capability: 'x', repeat: { until: isDone, max: 10, pause: '20ms' } },
        { id: 'b', capability: 'y', input: { file: '{{ steps.a.output.file }}' } },
      ],
      output: '{{ steps.b.output.file }}',
    },
    {
      script: { capabilities: { ...job.capabilities, y: echo } },
      expected: {
        ...succeeded,
        output: 'a.mp4',
        calls: { x: 3, y: 1 },
        steps: {
          a: { state: 'succeeded', items: ['succeeded', 'succeeded', 'succeeded'] },
        },
      },
    },
  ),
  happy(
    'step.repeat',
    'a round has its index, and the output of the one before it',
    step(
      { until: 'round.index == 3', max: 5 },
      { input: { n: '{{ (round.previous.n ?? 1) * 2 }}', at: '{{ round.index }}' } },
    ),
    { script, expected: { ...succeeded, output: { n: 16, at: 3 }, calls: { x: 4 } } },
  ),
  happy(
    'step.repeat',
    'values may be set in rounds',
    {
      steps: [
        {
          id: 'a',
          set: { list: '{{ (round.previous.list ?? []) | concat([round.index]) }}' },
          repeat: { until: 'round.output.list | length == 3', max: 3 },
        },
      ],
      output: '{{ steps.a.output.list }}',
    },
    { expected: { ...succeeded, output: [0, 1, 2] } },
  ),
  happy(
    'step.repeat',
    'a round may be a child run, whose output is the state of the next one',
    {
      steps: [
        {
          id: 'a',
          pipeline: 'conformance-plan-and-act@1',
          input: { state: '{{ round.previous ?? job.start }}' },
          repeat: { until: 'round.output.left == 0', max: 9 },
        },
      ],
      output: '{{ steps.a.output }}',
    },
    {
      job: { start: { left: 3, done: [] } },
      script: {
        capabilities: { plan: echo, act: echo },
        pipelines: [
          sub('conformance-plan-and-act', {
            steps: [
              { id: 'plan', capability: 'plan', input: { left: '{{ job.state.left - 1 }}' } },
              {
                id: 'act',
                capability: 'act',
                input: { done: '{{ job.state.done | concat([steps.plan.output.left]) }}' },
              },
            ],
            output: { left: '{{ steps.plan.output.left }}', done: '{{ steps.act.output.done }}' },
          }),
        ],
      },
      expected: {
        ...succeeded,
        output: { left: 0, done: [2, 1, 0] },
        calls: { plan: 3, act: 3 },
        steps: { a: { items: ['succeeded', 'succeeded', 'succeeded'] } },
      },
    },
  ),
  unhappy(
    'step.repeat',
    'the step fails with its round',
    step({ until: isDone, max: 10 }, { input: { at: '{{ round.index }}' }, retry: { max: 0 } }),
    {
      script: {
        capabilities: {
          x: {
            replies: [
              { when: 'input.at == 1', error: { status: 500, message: 'broken' } },
              { output: { status: 'running' } },
            ],
          },
        },
      },
      expected: {
        outcome: 'failed',
        error: 'step_failed',
        calls: { x: 2 },
        steps: { a: { state: 'failed', error: 'capability_failed', items: ['succeeded', 'failed'] } },
      },
    },
  ),
  happy(
    'step.repeat',
    'a failure that a retry cures ends no round',
    step({ until: 'round.index == 1', max: 5 }, { retry: { max: 1, initial: '10ms' } }),
    {
      script: {
        capabilities: { x: { replies: [{ times: 1, error: { status: 503, message: 'later' } }, {}] } },
      },
      expected: { ...succeeded, calls: { x: 3 }, steps: { a: { items: ['succeeded', 'succeeded'] } } },
    },
  ),
  happy(
    'step.repeat',
    'a step that its condition leaves out has no round',
    { steps: [{ id: 'a', capability: 'x', when: 'job.wanted', repeat: { until: isDone, max: 3 } }] },
    {
      script,
      job: { wanted: false },
      expected: { ...succeeded, calls: { x: 0 }, steps: { a: { state: 'skipped', items: [] } } },
    },
  ),
  unhappy(
    'step.repeat',
    'for_each and repeat on one step are refused',
    step({ until: 'round.output.ok', max: 2 }, { for_each: { items: [1, 2] } }),
    refused('repeat_conflict', '/steps/0/repeat'),
  ),
  unhappy(
    'step.repeat',
    'a wait is not repeated',
    { steps: [{ id: 'a', wait: '1s', repeat: { until: 'round.index == 2', max: 3 } }] },
    refused('key_not_applicable', '/steps/0/repeat'),
  ),
  unhappy(
    'step.repeat',
    'a cache that would answer every round is refused',
    step({ until: isDone, max: 3 }, { cache: { ttl: '1h' }, input: { id: '{{ job.id }}' } }),
    refused('repeat_conflict', '/steps/0/cache'),
  ),
];

const conditions: readonly ConformanceCase[] = [
  happy(
    'repeat.until',
    'the condition is judged on each output, also the first',
    step({ until: 'round.output.n >= job.enough', max: 5 }, { input: { n: '{{ round.index }}' } }),
    { script, job: { enough: 0 }, expected: { ...succeeded, output: { n: 0 }, calls: { x: 1 } } },
  ),
  happy(
    'repeat.until',
    'an output may be compared with the one before it',
    step(
      { until: 'round.output.n == (round.previous.n ?? -1)', max: 9 },
      { input: { n: '{{ ((round.index + 1) / 2) | floor }}' } },
    ),
    { script, expected: { ...succeeded, steps: { a: { state: 'succeeded' } } } },
  ),
  unhappy(
    'repeat.until',
    'a condition that gives no boolean fails the step',
    step({ until: 'round.output.status', max: 5 }),
    {
      script: job,
      expected: {
        outcome: 'failed',
        calls: { x: 1 },
        steps: { a: { state: 'failed', error: 'expression_unresolved', items: ['succeeded'] } },
      },
    },
  ),
  unhappy(
    'repeat.until',
    'a condition on a value that is missing fails the step',
    step({ until: 'round.output.state == "done"', max: 5 }),
    {
      script: job,
      expected: { outcome: 'failed', steps: { a: { state: 'failed', error: 'expression_unresolved' } } },
    },
  ),
  unhappy(
    'repeat.until',
    'a condition that can never be a boolean is refused',
    step({ until: 'round.index', max: 5 }),
    refused('operand_invalid', '/steps/0/repeat/until'),
  ),
  unhappy(
    'repeat.until',
    'the input cannot read an output of its own round',
    step({ until: isDone, max: 5 }, { input: { x: '{{ round.output.status }}' } }),
    refused('root_unavailable', '/steps/0/input/x'),
  ),
];

const bounds: readonly ConformanceCase[] = [
  happy('repeat.max', 'the condition may hold in the last round', step({ until: isDone, max: 3 }), {
    script: job,
    expected: { ...succeeded, calls: { x: 3 } },
  }),
  unhappy('repeat.max', 'after the last round, the step fails', step({ until: isDone, max: 2 }), {
    script: job,
    expected: {
      outcome: 'failed',
      calls: { x: 2 },
      steps: { a: { state: 'failed', error: 'rounds_exhausted', items: ['succeeded', 'succeeded'] } },
    },
  }),
  unhappy(
    'repeat.max',
    '0 is refused',
    step({ until: isDone, max: 0 }),
    refused('value_invalid', '/steps/0/repeat/max'),
  ),
  happy(
    'repeat.pause',
    'between two rounds the step waits; a pause of the run does not end the wait',
    step({ until: isDone, max: 3, pause: '50ms' }),
    { script: job, expected: { ...succeeded, calls: { x: 3 } } },
  ),
  unhappy(
    'repeat.pause',
    'a pause above 7 days is refused',
    step({ until: isDone, max: 3, pause: '8d' }),
    refused('duration_out_of_range', '/steps/0/repeat/pause'),
  ),
  happy(
    'repeat.timeout',
    'the condition may hold before the time is over',
    step({ until: isDone, max: 3, timeout: '1h' }),
    { script: job, expected: { ...succeeded, calls: { x: 3 } } },
  ),
  unhappy(
    'repeat.timeout',
    'no round begins when the time is over',
    step({ until: 'round.output.status == "never"', max: 1000, pause: '400ms', timeout: '1s' }),
    {
      script: job,
      expected: { outcome: 'failed', steps: { a: { state: 'failed', error: 'rounds_exhausted' } } },
    },
  ),
  unhappy(
    'repeat.timeout',
    'a pause that is over after the timeout is refused',
    step({ until: isDone, max: 3, pause: '1m', timeout: '30s' }),
    refused('repeat_conflict', '/steps/0/repeat/pause'),
  ),
  happy(
    'repeat.on_exhausted',
    'with continue, the step succeeds with the last output',
    step({ until: isDone, max: 2, on_exhausted: 'continue' }),
    { script: job, expected: { ...succeeded, output: { status: 'running' }, calls: { x: 2 } } },
  ),
  unhappy(
    'repeat.on_exhausted',
    'another word is refused',
    step({ until: isDone, max: 2, on_exhausted: 'skip' }),
    refused('value_invalid', '/steps/0/repeat/on_exhausted'),
  ),
];

/** What happens to a run from outside, between two of its rounds. */
const outside: readonly ConformanceCase[] = [
  happy(
    'step.repeat',
    'a round that finds no budget waits for it; the rounds before it are paid',
    { ...step({ until: 'round.index == 2', max: 9 }), budget_ceiling_usd: 1 },
    {
      script: {
        capabilities: { x: { cost_model: { type: 'per_call', rate_usd: 0.6 } } },
        budget_reviews: [{ action: 'raise', budget_ceiling_usd: 2 }],
      },
      expected: {
        ...succeeded,
        calls: { x: 3 },
        steps: { a: { items: ['succeeded', 'succeeded', 'succeeded'] } },
      },
    },
  ),
  happy(
    'step.repeat',
    'a person corrects the input of a round, and the next round reads its output',
    step({ until: 'round.index == 1', max: 3 }, { input: { n: '{{ round.previous.n ?? "none" }}' } }),
    {
      script: {
        capabilities: {
          x: { replies: [{ when: 'input.n == "none"', error: { status: 422, message: 'n is none' } }, {}] },
        },
        reviews: { a: [{ action: 'edit', input: { n: 7 } }] },
      },
      expected: { ...succeeded, output: { n: 7 }, steps: { a: { items: ['succeeded', 'succeeded'] } } },
    },
  ),
  happy(
    'step.repeat',
    'a run that is paused between two rounds continues with the next one',
    step({ until: 'round.index == 1', max: 3, pause: '800ms' }),
    {
      script: {
        ...script,
        control: [
          { at: '300ms', action: 'pause' },
          { at: '1500ms', action: 'resume' },
        ],
      },
      expected: { ...succeeded, calls: { x: 2 } },
    },
  ),
  unhappy(
    'step.repeat',
    'a run that is cancelled between two rounds makes no other one',
    step({ until: 'round.index == 1', max: 3, pause: '1h' }),
    {
      script: { ...script, control: [{ at: '1500ms', action: 'cancel' }] },
      expected: {
        outcome: 'cancelled',
        calls: { x: 1 },
        steps: { a: { state: 'cancelled', items: ['succeeded', 'cancelled'] } },
      },
    },
  ),
  unhappy(
    'step.repeat',
    'exhausted rounds that are tolerated let the run continue',
    {
      steps: [
        { id: 'a', capability: 'x', on_error: 'continue', repeat: { until: isDone, max: 1 } },
        { id: 'b', capability: 'y', depends_on: ['a'], run_if: 'any_failed' },
      ],
    },
    {
      script: { capabilities: { ...job.capabilities, y: echo } },
      expected: {
        ...succeeded,
        steps: { a: { state: 'failed', error: 'rounds_exhausted' }, b: 'succeeded' },
      },
    },
  ),
];

export const repeatCases: readonly ConformanceCase[] = [...rounds, ...conditions, ...bounds, ...outside];
