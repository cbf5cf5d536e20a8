import { type ConformanceCase, echo, fails, happy, refused, succeeded, unhappy } from '../case.ts';

const script = { capabilities: { x: echo, bad: fails } };
const fail = { id: 'bad', capability: 'bad', retry: { max: 0 }, on_error: 'continue' };
function after(ids: readonly string[], run_if?: string) {
  return {
    id: 'after',
    capability: 'x',
    depends_on: ids,
    ...(run_if === undefined ? {} : { run_if }),
  };
}
const good = { id: 'good', capability: 'x' };
const skipped = { id: 'skipped', capability: 'x', when: 'false' };

export const orderCases: readonly ConformanceCase[] = [
  happy(
    'step.depends_on',
    'a step happens after those it depends on, also against the order of the file',
    {
      steps: [
        { id: 'b', capability: 'x', depends_on: ['a'], input: { a: '{{ steps.a.output.n }}' } },
        { id: 'a', capability: 'x', input: { n: 1 } },
      ],
    },
    { script, expected: { ...succeeded, steps: { b: { output: { a: 1 } } } } },
  ),
  unhappy(
    'step.depends_on',
    'a step that does not exist is refused',
    { steps: [{ id: 'a', capability: 'x', depends_on: ['b'] }] },
    refused('step_unknown', '/steps/0/depends_on/0'),
  ),
  unhappy(
    'step.depends_on',
    'a circle is refused',
    {
      steps: [
        { id: 'a', capability: 'x', depends_on: ['b'] },
        { id: 'b', capability: 'x', depends_on: ['a'] },
      ],
    },
    refused('cycle', '/steps/0'),
  ),
  happy(
    'step.when',
    'a step whose condition holds happens',
    { steps: [{ id: 'a', capability: 'x', when: 'job.n > 1 && job.n != 3' }] },
    { script, job: { n: 2 }, expected: { ...succeeded, steps: { a: 'succeeded' } } },
  ),
  happy(
    'step.when',
    'a step whose condition does not hold is skipped, with all that follows',
    {
      steps: [
        { id: 'a', capability: 'x', when: 'job.n > 1' },
        { id: 'b', capability: 'x', depends_on: ['a'] },
        { id: 'c', capability: 'x', depends_on: ['b'] },
      ],
    },
    {
      script,
      job: { n: 1 },
      expected: { ...succeeded, steps: { a: 'skipped', b: 'skipped', c: 'skipped' }, calls: { x: 0 } },
    },
  ),
  happy(
    'step.when',
    'a condition sees what earlier steps answered',
    {
      steps: [
        { id: 'a', capability: 'x', input: { n: 5 } },
        { id: 'b', capability: 'x', when: 'steps.a.output.n == 5' },
        { id: 'c', capability: 'x', when: '{{ steps.a.output.n == 6 }}' },
      ],
    },
    { script, expected: { ...succeeded, steps: { b: 'succeeded', c: 'skipped' } } },
  ),
  unhappy(
    'step.when',
    'a condition about a value that is missing makes the step fail',
    { steps: [{ id: 'a', capability: 'x', when: 'job.n > 1' }] },
    {
      script,
      expected: {
        outcome: 'failed',
        calls: { x: 0 },
        steps: { a: { state: 'failed', error: 'expression_unresolved' } },
      },
    },
  ),
  happy(
    'step.run_if',
    'any_failed: a step happens because another failed',
    { steps: [fail, good, after(['bad', 'good'], 'any_failed')] },
    { script, expected: { ...succeeded, steps: { bad: 'failed', after: 'succeeded' } } },
  ),
  happy(
    'step.run_if',
    'any_succeeded: one that succeeded is enough',
    { steps: [fail, good, skipped, after(['bad', 'good', 'skipped'], 'any_succeeded')] },
    { script, expected: { ...succeeded, steps: { after: 'succeeded', skipped: 'skipped' } } },
  ),
  happy(
    'step.run_if',
    'all_done: a step happens however the others ended',
    { steps: [fail, skipped, after(['bad', 'skipped'], 'all_done')] },
    { script, expected: { ...succeeded, steps: { after: 'succeeded' } } },
  ),
  unhappy(
    'step.run_if',
    'any_failed: a step is skipped when none failed',
    { steps: [good, skipped, after(['good', 'skipped'], 'any_failed')] },
    { script, expected: { ...succeeded, steps: { after: 'skipped' } } },
  ),
  unhappy(
    'step.run_if',
    'any_succeeded: a step is skipped when none succeeded',
    { steps: [fail, skipped, after(['bad', 'skipped'], 'any_succeeded')] },
    { script, expected: { ...succeeded, steps: { after: 'skipped' } } },
  ),
  unhappy(
    'step.run_if',
    'by default a step is skipped when one that it depends on failed',
    { steps: [fail, good, after(['bad', 'good'])] },
    { script, expected: { ...succeeded, steps: { after: 'skipped' } } },
  ),
  happy(
    'step.on_error',
    'continue: the run continues, and expressions read the cause',
    {
      steps: [
        fail,
        {
          id: 'b',
          capability: 'x',
          run_if: 'all_done',
          input: { was: '{{ steps.bad.status }}', why: '{{ steps.bad.error.code }}' },
        },
      ],
    },
    {
      script,
      expected: {
        ...succeeded,
        steps: { bad: { state: 'failed' }, b: { output: { was: 'failed', why: 'capability_failed' } } },
      },
    },
  ),
  unhappy(
    'step.on_error',
    'by default the run fails: what runs ends, nothing new begins',
    {
      steps: [
        { ...fail, on_error: 'fail' },
        { id: 'slow', capability: 'slow' },
        { id: 'never', capability: 'x', depends_on: ['slow'] },
      ],
    },
    {
      script: { capabilities: { ...script.capabilities, slow: { replies: [{ delay: '1s' }] } } },
      expected: {
        outcome: 'failed',
        error: 'step_failed',
        calls: { x: 0 },
        steps: { bad: 'failed', slow: 'succeeded', never: 'skipped' },
      },
    },
  ),
  happy(
    'pipeline.steps',
    'a paused run starts nothing new until it is resumed',
    {
      steps: [
        { id: 'a', capability: 'slow' },
        { id: 'b', capability: 'x', depends_on: ['a'] },
      ],
    },
    {
      script: {
        capabilities: { x: echo, slow: { replies: [{ delay: '800ms' }] } },
        control: [
          { at: '200ms', action: 'pause' },
          { at: '1500ms', action: 'resume' },
        ],
      },
      expected: { ...succeeded, steps: { a: 'succeeded', b: 'succeeded' } },
    },
  ),
  unhappy(
    'pipeline.steps',
    'a cancelled run ends what runs and leaves out the rest',
    {
      steps: [
        { id: 'a', capability: 'slow' },
        { id: 'b', capability: 'x', depends_on: ['a'] },
        { id: 'w', wait: '1h' },
      ],
    },
    {
      script: {
        capabilities: { x: echo, slow: { replies: [{ delay: '60s' }] } },
        control: [{ at: '300ms', action: 'cancel' }],
      },
      expected: {
        outcome: 'cancelled',
        steps: { a: 'cancelled', b: 'cancelled', w: 'cancelled' },
        calls: { x: 0 },
      },
    },
  ),
];
