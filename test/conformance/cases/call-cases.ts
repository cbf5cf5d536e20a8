import type { MockReply } from '@capstan/core/mock-run/mocks';
import {
  type ConformanceCase,
  echo,
  fails,
  failsOnce,
  happy,
  onceMore,
  refused,
  succeeded,
  takesNumber,
  unhappy,
} from '../case.ts';

const script = { capabilities: { x: echo } };
const broken = { capabilities: { x: fails } };
const recovers = { capabilities: { x: failsOnce } };
function step(part: object) {
  return { steps: [{ id: 'a', capability: 'x', ...part }] };
}
function failed(error: string, calls?: number) {
  return {
    ...({ outcome: 'failed', error: 'step_failed', steps: { a: { state: 'failed', error } } } as const),
    ...(calls === undefined ? {} : { calls: { x: calls } }),
  };
}
const twice = { ...succeeded, steps: { a: { state: 'succeeded', attempts: 2 } }, calls: { x: 2 } } as const;
const versions = {
  capabilities: {
    x: {
      instances: [
        { version: '1.4.0', tags: ['local', 'gpu'] },
        { version: '2.0.1', tags: ['local'] },
      ],
      replies: [{ instance: 1, output: { by: 1 } }, { output: { by: 2 } }],
    },
  },
};
const slowlyFails = {
  replies: [{ times: 1, delay: '600ms', error: { status: 500, message: 'broken' } }, {}],
};
/** During the first call, until then. */
function paused(at: string, action: 'resume' | 'cancel') {
  return [
    { at: '200ms', action: 'pause' as const },
    { at, action },
  ];
}
/** The first is preferred, and does not answer it. */
function deafFirst(reply: object, part: object = {}) {
  const instances = [{}, { cost_model: { type: 'per_call' as const, rate_usd: 0.01 } }];
  const replies = [{ instance: 1, ...reply }, { output: { by: 2 } }];
  return { capabilities: { x: { instances, replies, ...part } } };
}
const anObject = { output: { type: 'object' } } as const;
const needsN = { type: 'object', required: ['n'] };
/** Its first answers do not match its schema. */
function wrongAtFirst(times: number) {
  const replies: MockReply[] = [{ times, output: { m: 1 } }, { output: { n: 1 } }];
  return {
    capabilities: { x: { output: needsN, replies } },
  };
}
const bySecond = {
  ...succeeded,
  steps: { a: { state: 'succeeded', attempts: 2, output: { by: 2 } } },
  calls: { x: 2 },
} as const;
const paid = { capabilities: { x: { cost_model: { type: 'per_call', rate_usd: 0.5 } } } } as const;

export const callCases: readonly ConformanceCase[] = [
  happy(
    'step.input',
    'an expression alone keeps the type of its value; text around it makes it text',
    step({
      input: {
        n: '{{ job.n }}',
        text: 'n is {{ job.n }}',
        list: ['{{ job.none ?? 0 }}'],
        raw: { $literal: '{{ job.n }}' },
      },
    }),
    {
      script,
      job: { n: 4 },
      expected: {
        ...succeeded,
        steps: { a: { output: { n: 4, text: 'n is 4', list: [0], raw: '{{ job.n }}' } } },
      },
    },
  ),
  happy(
    'step.input',
    'one expression gives all of it, also for each item',
    step({ input: '{{ item }}', for_each: { items: [{ n: 1 }, { n: 2 }] } }),
    { script, expected: { ...succeeded, steps: { a: { output: [{ n: 1 }, { n: 2 }] } } } },
  ),
  unhappy(
    'step.input',
    'if the one expression gives no object, the step fails before the call',
    step({ input: '{{ job.n }}' }),
    { script, job: { n: 4 }, expected: failed('expression_unresolved', 0) },
  ),
  unhappy(
    'step.input',
    'a text that is no expression is refused',
    step({ input: 'n' as never }),
    refused('type_invalid', '/steps/0/input'),
  ),
  unhappy(
    'step.input',
    'if a value of the input is missing, the step fails before the call',
    step({ input: { n: '{{ job.n }}' } }),
    { script, expected: failed('expression_unresolved', 0) },
  ),
  happy(
    'step.retry',
    'a transient failure is retried',
    step({ retry: { max: 2, initial: '10ms', factor: 1 } }),
    {
      script: {
        capabilities: { x: { replies: [{ times: 2, error: { status: 500, message: 'broken' } }, {}] } },
      },
      expected: { ...succeeded, steps: { a: { state: 'succeeded', attempts: 3 } } },
    },
  ),
  ...[408, 409].map((status) =>
    happy(
      'step.retry',
      `${status} does not refuse the input: the call is retried`,
      step({ retry: onceMore }),
      {
        script: { capabilities: { x: { replies: [{ times: 1, error: { status, message: 'later' } }, {}] } } },
        expected: twice,
      },
    ),
  ),
  happy(
    'step.retry',
    'a call whose later answer is a transient failure is retried',
    step({ retry: onceMore }),
    {
      script: {
        capabilities: {
          x: { replies: [{ times: 1, later: '200ms', error: { status: 500, message: 'broken' } }, {}] },
        },
      },
      expected: twice,
    },
  ),
  happy(
    'step.retry',
    'a call with a lost connection is sent to another instance at once',
    step({ retry: { max: 1, initial: '1h' }, total_timeout: '20s' }),
    { script: deafFirst({ lost: true }), expected: bySecond },
  ),
  unhappy(
    'step.retry',
    'if every instance loses the connection, each gets retries, up to the limit',
    step({ retry: { max: 2, initial: '10ms' } }),
    {
      script: { capabilities: { x: { instances: [{}, { tags: ['far'] }], replies: [{ lost: true }] } } },
      expected: failed('contact_lost', 3),
    },
  ),
  unhappy('step.retry', 'if every attempt fails, the step fails', step({ retry: onceMore }), {
    script: broken,
    expected: failed('capability_failed', 2),
  }),
  happy('retry.max', 'one retry allows two attempts', step({ retry: onceMore }), {
    script: recovers,
    expected: twice,
  }),
  unhappy('retry.max', 'with 0, a step with a lost connection ends as unknown', step({ retry: { max: 0 } }), {
    script: { capabilities: { x: { replies: [{ lost: true }] } } },
    expected: {
      outcome: 'failed',
      steps: { a: { state: 'unknown', error: 'delivery_unknown' } },
      calls: { x: 1 },
    },
  }),
  unhappy(
    'retry.max',
    'with 0, a step that times out ends as unknown',
    step({ timeout: '300ms', retry: { max: 0 } }),
    {
      script: { capabilities: { x: { replies: [{ delay: '60s' }] } } },
      expected: {
        outcome: 'failed',
        steps: { a: { state: 'unknown', error: 'delivery_unknown', attempts: 1 } },
        calls: { x: 1 },
      },
    },
  ),
  happy(
    'retry.invalid_output',
    'a wrong answer is asked for again, at once',
    step({ retry: { invalid_output: 2, initial: '1h' } }),
    { script: wrongAtFirst(2), expected: { ...succeeded, steps: { a: { attempts: 3 } }, calls: { x: 3 } } },
  ),
  happy('retry.invalid_output', 'another instance is asked first', step({ retry: { invalid_output: 1 } }), {
    script: deafFirst({ output: 1 }, anObject),
    expected: bySecond,
  }),
  happy(
    'retry.invalid_output',
    'a wrong answer does not count against retry.max, nor another failure against it',
    step({ retry: { max: 1, initial: '10ms', invalid_output: 1 } }),
    {
      script: {
        capabilities: {
          x: {
            output: needsN,
            replies: [
              { times: 1, output: {} },
              { times: 1, error: { status: 500, message: 'broken' } },
              { output: { n: 1 } },
            ],
          },
        },
      },
      expected: { ...succeeded, steps: { a: { attempts: 3 } }, calls: { x: 3 } },
    },
  ),
  unhappy(
    'retry.invalid_output',
    'if the answer is still wrong, the step fails',
    step({ retry: { max: 5, initial: '10ms', invalid_output: 2 }, escalate: { enabled: false } }),
    { script: wrongAtFirst(9), expected: failed('output_invalid', 3) },
  ),
  unhappy(
    'retry.invalid_output',
    'the ceiling of the step bounds how often it is asked for again',
    step({ retry: { invalid_output: 9 }, budget_ceiling_usd: 1.2, escalate: { enabled: false } }),
    {
      script: { capabilities: { x: { ...wrongAtFirst(9).capabilities.x, ...paid.capabilities.x } } },
      expected: failed('output_invalid', 2),
    },
  ),
  unhappy(
    'retry.invalid_output',
    'a call that is sent once cannot be asked for again',
    step({ retry: { max: 0, invalid_output: 1 } }),
    refused('retry_conflict', '/steps/0/retry/invalid_output'),
  ),
  happy('retry.initial', 'a retry follows after this pause', step({ retry: { max: 1, initial: '100ms' } }), {
    script: recovers,
    expected: twice,
  }),
  unhappy(
    'retry.initial',
    'a pause of more than a day is refused',
    step({ retry: { initial: '25h' } }),
    refused('duration_out_of_range', '/steps/0/retry/initial'),
  ),
  happy(
    'retry.factor',
    'with 1, all pauses have the same length',
    step({ retry: { max: 1, initial: '10ms', factor: 1 } }),
    {
      script: recovers,
      expected: twice,
    },
  ),
  unhappy(
    'retry.factor',
    'a factor below 1 is refused',
    step({ retry: { factor: 0.5 } }),
    refused('value_invalid', '/steps/0/retry/factor'),
  ),
  happy(
    'retry.max_delay',
    'no pause is longer',
    step({ total_timeout: '20s', retry: { max: 4, initial: '20ms', factor: 10, max_delay: '20ms' } }),
    {
      script: { capabilities: { x: { replies: [{ times: 4, error: { status: 500, message: 'no' } }, {}] } } },
      expected: { ...succeeded, steps: { a: { attempts: 5 } } },
    },
  ),
  unhappy(
    'retry.max_delay',
    'less than the first pause is refused',
    step({ retry: { initial: '5m', max_delay: '1m' } }),
    refused('retry_conflict', '/steps/0/retry/initial'),
  ),
  unhappy(
    'retry.max_delay',
    'more than a day is refused',
    step({ retry: { max_delay: '25h' } }),
    refused('duration_out_of_range', '/steps/0/retry/max_delay'),
  ),
  happy('step.timeout', 'an answer in time is accepted', step({ timeout: '20s' }), {
    script: { capabilities: { x: { replies: [{ delay: '100ms' }] } } },
    expected: { ...succeeded, steps: { a: { attempts: 1 } } },
  }),
  happy('step.timeout', 'a later answer in time is accepted', step({ timeout: '20s', input: { n: 1 } }), {
    script: { capabilities: { x: { replies: [{ later: '300ms' }] } } },
    expected: { ...succeeded, steps: { a: { attempts: 1, output: { n: 1 } } }, calls: { x: 1 } },
  }),
  unhappy(
    'step.timeout',
    'an accepted call without its later answer times out',
    step({ timeout: '500ms', retry: onceMore }),
    {
      script: { capabilities: { x: { replies: [{ later: '60s' }] } } },
      expected: failed('attempt_timeout', 2),
    },
  ),
  happy(
    'step.timeout',
    'after a timeout, another instance is called',
    step({ timeout: '300ms', retry: { max: 1, initial: '1h' }, total_timeout: '20s' }),
    { script: deafFirst({ delay: '60s' }), expected: bySecond },
  ),
  unhappy(
    'step.timeout',
    'if every attempt times out, the step fails',
    step({ timeout: '300ms', retry: onceMore }),
    {
      script: { capabilities: { x: { replies: [{ delay: '60s' }] } } },
      expected: failed('attempt_timeout', 2),
    },
  ),
  happy(
    'step.queue_timeout',
    'a call that gets a free slot in time is made, and its wait counts against no other timeout',
    step({
      for_each: { items: [1, 2, 3, 4, 5, 6, 7, 8] },
      queue_timeout: '1h',
      total_timeout: '6s',
      timeout: '5s',
    }),
    {
      script: { capabilities: { x: { max_concurrency: 1, replies: [{ delay: '1s' }] } } },
      expected: { ...succeeded, calls: { x: 8 } },
    },
  ),
  unhappy(
    'step.queue_timeout',
    'if no slot becomes free in time, the step fails without a call',
    step({ for_each: { items: [1, 2], tolerate: 1 }, queue_timeout: '3s' }),
    {
      script: { capabilities: { x: { max_concurrency: 1, replies: [{ delay: '15s' }] } } },
      expected: { ...succeeded, calls: { x: 1 } },
    },
  ),
  unhappy(
    'step.queue_timeout',
    'if no slot becomes free in time for a corrected input, the step fails without that call',
    step({
      for_each: { items: '{{ job.texts }}', tolerate: 1 },
      input: { n: '{{ item }}' },
      queue_timeout: '3s',
      escalate: { repair: 'apply' },
    }),
    {
      job: { texts: ['1', '2'] },
      script: {
        capabilities: { x: { ...takesNumber, max_concurrency: 1, replies: [{ delay: '15s' }] } },
      },
      expected: { ...succeeded, calls: { x: 1 } },
    },
  ),
  happy(
    'step.total_timeout',
    'a step that ends in time succeeds',
    step({ total_timeout: '30s', retry: onceMore }),
    {
      script: recovers,
      expected: twice,
    },
  ),
  unhappy(
    'step.total_timeout',
    'a step stops waiting for a busy instance when its time is over',
    step({ total_timeout: '400ms' }),
    {
      script: { capabilities: { x: { replies: [{ error: { status: 503, message: 'full' } }] } } },
      expected: failed('step_timeout'),
    },
  ),
  happy('step.priority', 'a step may be interactive', step({ priority: 'interactive' }), {
    script,
    expected: succeeded,
  }),
  unhappy(
    'step.priority',
    'a priority that does not exist is refused',
    step({ priority: 'low' }),
    refused('value_invalid', '/steps/0/priority'),
  ),
  happy('step.budget_ceiling_usd', 'a call below the ceiling is made', step({ budget_ceiling_usd: 0.5 }), {
    script: paid,
    expected: { ...succeeded, calls: { x: 1 } },
  }),
  unhappy(
    'step.budget_ceiling_usd',
    'if every instance costs more, the step fails at no cost',
    step({ budget_ceiling_usd: 0.4 }),
    { script: paid, expected: failed('ceiling_too_low', 0) },
  ),
  happy(
    'step.on_budget',
    'a call is made while its budget has room for its worst case',
    step({ on_budget: 'refuse' }),
    {
      script: paid,
      expected: { ...succeeded, calls: { x: 1 } },
    },
  ),
  unhappy(
    'step.on_budget',
    'another word is refused',
    step({ on_budget: 'wait' }),
    refused('value_invalid', '/steps/0/on_budget'),
  ),
  happy(
    'step.capability_version',
    'only an instance in the version range is called',
    step({ capability_version: '^2.0.0' }),
    {
      script: versions,
      expected: { ...succeeded, steps: { a: { output: { by: 2 } } } },
    },
  ),
  unhappy(
    'step.capability_version',
    'with other versions only, the step waits until its time is over',
    step({ capability_version: '^3.0.0', total_timeout: '400ms' }),
    { script: versions, expected: failed('step_timeout', 0) },
  ),
  unhappy(
    'step.capability_version',
    'an invalid version range is refused',
    step({ capability_version: 'newest' }),
    refused('semver_range_invalid', '/steps/0/capability_version'),
  ),
  happy(
    'step.affinity',
    'the key of a call decides where it is made, and never whether',
    step({ affinity: '{{ input.model | default("none") }}' }),
    { script: versions, expected: succeeded },
  ),
  unhappy(
    'step.affinity',
    'a text that is no expression over the input is refused',
    step({ affinity: '{{ job.model }}' }),
    refused('affinity_invalid', '/steps/0/affinity'),
  ),
  happy('step.tags', 'only an instance with all the tags is called', step({ tags: ['gpu'] }), {
    script: versions,
    expected: { ...succeeded, steps: { a: { output: { by: 1 } } } },
  }),
  unhappy(
    'step.tags',
    'without an instance that has the tags, the step waits until its time is over',
    step({ tags: ['tpu'], total_timeout: '400ms' }),
    { script: versions, expected: failed('step_timeout', 0) },
  ),
  happy(
    'step.dispatch',
    'inline steps have the same results as queued steps',
    {
      steps: [
        { id: 'a', capability: 'x', dispatch: 'inline', input: { n: 1 }, retry: onceMore },
        { id: 'b', capability: 'x', dispatch: 'inline', input: { n: '{{ steps.a.output.n }}' } },
      ],
    },
    { script: recovers, expected: { ...succeeded, output: { b: { n: 1 } }, calls: { x: 3 } } },
  ),
  unhappy(
    'step.dispatch',
    'inline steps fail in the same way as queued steps',
    step({ dispatch: 'inline', retry: onceMore }),
    {
      script: broken,
      expected: failed('capability_failed', 2),
    },
  ),
  happy(
    'step.wait_for_capability',
    'an instance that is registered in time is called',
    step({ wait_for_capability: '30s' }),
    {
      script: { capabilities: { x: { registered_after: '500ms' } } },
      expected: { ...succeeded, calls: { x: 1 } },
    },
  ),
  unhappy(
    'step.wait_for_capability',
    'if no instance is registered in time, the step fails',
    step({ wait_for_capability: '200ms' }),
    { script: { capabilities: { x: { instances: [] } } }, expected: failed('no_instance', 0) },
  ),
  unhappy(
    'retry.max',
    'while the run is paused, no retry begins, on no instance',
    step({ retry: { max: 3, initial: '100ms' } }),
    {
      script: {
        capabilities: { x: { instances: [{}, {}], ...slowlyFails } },
        control: paused('2500ms', 'cancel'),
      },
      expected: { outcome: 'cancelled', steps: { a: 'cancelled' }, calls: { x: 1 } },
    },
  ),
  happy(
    'retry.max',
    'a retry that a pause has held follows after the resume',
    step({ retry: { max: 1, initial: '100ms' } }),
    {
      script: { capabilities: { x: slowlyFails }, control: paused('2s', 'resume') },
      expected: twice,
    },
  ),
  happy(
    'step.total_timeout',
    'the time of a step does not pass while its run is paused',
    step({ retry: { max: 1, initial: '100ms' }, total_timeout: '8s' }),
    {
      script: { capabilities: { x: slowlyFails }, control: paused('9s', 'resume') },
      expected: twice,
    },
  ),
];
