import {
  type ConformanceCase,
  echo,
  happy,
  refused,
  rejects,
  type Script,
  succeeded,
  takesNumber,
  unhappy,
} from '../case.ts';

/** A number as text, where a number is wanted. */
const job = { n: '5' };
const mistaken = { capabilities: { x: takesNumber } };
function step(escalate: object, part: object = {}) {
  return {
    steps: [{ id: 'a', capability: 'x', input: { n: '{{ job.n }}' }, escalate, ...part }],
  };
}
const repaired = {
  ...succeeded,
  steps: { a: { state: 'succeeded', output: { n: 5 } } },
  calls: { x: 1 },
} as const;
function failed(error: string, calls = 0) {
  return { outcome: 'failed', steps: { a: { state: 'failed', error } }, calls: { x: calls } } as const;
}
const corrected: Script = { ...mistaken, reviews: { a: [{ action: 'edit', input: { n: 6 } }] } };
function dependent(part: object) {
  return {
    steps: [
      { id: 'a', capability: 'x', input: { n: '{{ job.n }}' }, ...part },
      { id: 'b', capability: 'y', depends_on: ['a'] },
    ],
  };
}

export const escalationCases: readonly ConformanceCase[] = [
  happy('step.escalate', 'an input with exactly one possible repair is repaired', step({ repair: 'apply' }), {
    job,
    script: mistaken,
    expected: repaired,
  }),
  happy(
    'step.escalate',
    'a person corrects an input that was not repaired, and the run continues',
    step({}),
    {
      job,
      script: corrected,
      expected: { ...succeeded, steps: { a: { output: { n: 6 } } }, calls: { x: 1 } },
    },
  ),
  unhappy('step.escalate', 'if the person rejects, the step fails', step({}), {
    job,
    script: { ...mistaken, reviews: { a: [{ action: 'reject' }] } },
    expected: failed('review_rejected'),
  }),
  happy('escalate.enabled', 'by default a refused step escalates', step({ enabled: true }), {
    job,
    script: corrected,
    expected: { ...succeeded, steps: { a: { output: { n: 6 } } } },
  }),
  unhappy('step.escalate', 'while the run is paused, no escalation starts', step({ on_exhausted: 'fail' }), {
    script: {
      capabilities: { x: { replies: [{ delay: '800ms', error: { status: 422, message: 'n is wrong' } }] } },
      control: [
        { at: '200ms', action: 'pause' },
        { at: '2s', action: 'cancel' },
      ],
    },
    job,
    expected: { outcome: 'cancelled', steps: { a: 'cancelled' }, calls: { x: 1 } },
  }),
  unhappy(
    'escalate.enabled',
    'with false, the step fails with the error of the capability',
    step({ enabled: false }),
    {
      job,
      script: { capabilities: { x: rejects } },
      expected: failed('input_rejected', 1),
    },
  ),
  happy(
    'escalate.start_level',
    'level 0 tries first, whatever the lowest level is',
    step({ start_level: 2, repair: 'apply' }),
    {
      job,
      script: mistaken,
      expected: repaired,
    },
  ),
  unhappy(
    'escalate.start_level',
    'a lowest level above the highest is refused',
    step({ start_level: 3, max_level: 2 }),
    refused('escalation_levels_swapped', '/steps/0/escalate/start_level'),
  ),
  happy('escalate.max_level', 'with 0, level 0 still corrects', step({ max_level: 0, repair: 'apply' }), {
    job,
    script: mistaken,
    expected: repaired,
  }),
  unhappy(
    'escalate.max_level',
    'with 0, the escalation ends after level 0',
    step({ max_level: 0, on_exhausted: 'fail' }),
    {
      job,
      script: mistaken,
      expected: failed('ladder_exhausted'),
    },
  ),
  happy('escalate.max_usd', 'corrections at level 0 cost nothing', step({ max_usd: 0, repair: 'apply' }), {
    job,
    script: mistaken,
    expected: repaired,
  }),
  unhappy(
    'escalate.max_usd',
    'a negative amount is refused',
    step({ max_usd: -1 }),
    refused('value_invalid', '/steps/0/escalate/max_usd'),
  ),
  happy('escalate.repair', 'propose: a person approves the proposal', step({ repair: 'propose' }), {
    job,
    script: { ...mistaken, reviews: { a: [{ action: 'approve' }] } },
    expected: repaired,
  }),
  unhappy('escalate.repair', 'off: nothing is repaired', step({ repair: 'off', on_exhausted: 'fail' }), {
    job,
    script: mistaken,
    expected: failed('ladder_exhausted'),
  }),
  happy(
    'escalate.on_exhausted',
    'wait: the step waits for a review while other steps continue',
    {
      steps: [...step({ on_exhausted: 'wait' }).steps, { id: 'b', capability: 'y' }],
    },
    {
      job,
      script: {
        capabilities: { ...mistaken.capabilities, y: echo },
        reviews: { a: [{ after: '200ms', action: 'edit', input: { n: 1 } }] },
      },
      expected: { ...succeeded, steps: { a: 'succeeded', b: 'succeeded' } },
    },
  ),
  unhappy('escalate.on_exhausted', 'fail: the step fails at once', step({ on_exhausted: 'fail' }), {
    job,
    script: mistaken,
    expected: failed('ladder_exhausted'),
  }),
  happy('step.allow_output', 'a person enters the output of the step', step({}, { allow_output: true }), {
    job,
    script: { ...mistaken, reviews: { a: [{ action: 'output', output: { by: 'hand' } }] } },
    expected: { ...succeeded, steps: { a: { state: 'succeeded', output: { by: 'hand' } } }, calls: { x: 0 } },
  }),
  unhappy('step.allow_output', 'a person may still reject the step', step({}, { allow_output: true }), {
    job,
    script: { ...mistaken, reviews: { a: [{ action: 'reject' }] } },
    expected: failed('review_rejected'),
  }),
  happy(
    'step.optional',
    'a person skips the step, and the steps after it are skipped too',
    dependent({ optional: true }),
    {
      job,
      script: {
        capabilities: { ...mistaken.capabilities, y: echo },
        reviews: { a: [{ action: 'skip' }] },
      },
      expected: { ...succeeded, steps: { a: 'skipped', b: 'skipped' }, calls: { x: 0, y: 0 } },
    },
  ),
  unhappy(
    'step.optional',
    'a failure of an optional step still fails the run',
    dependent({ optional: true, escalate: { enabled: false } }),
    {
      job,
      script: { capabilities: { x: rejects, y: echo } },
      expected: { outcome: 'failed', steps: { a: 'failed', b: 'skipped' } },
    },
  ),
];
