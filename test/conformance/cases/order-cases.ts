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
    'a step runs after its dependencies, whatever their order in the file',
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
    'a cycle is refused',
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
    'a step runs if its condition is true',
    { steps: [{ id: 'a', capability: 'x', when: 'job.n > 1 && job.n != 3' }] },
    { script, job: { n: 2 }, expected: { ...succeeded, steps: { a: 'succeeded' } } },
  ),
  happy(
    'step.when',
    'a step is skipped if its condition is false, and so are the steps after it',
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
    'a condition reads the outputs of earlier steps',
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
    'if a value of the condition is missing, the step fails',
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
    'any_failed: a step runs after a dependency failed',
    { steps: [fail, good, after(['bad', 'good'], 'any_failed')] },
    { script, expected: { ...succeeded, steps: { bad: 'failed', after: 'succeeded' } } },
  ),
  happy(
    'step.run_if',
    'any_succeeded: one dependency that succeeded is enough',
    { steps: [fail, good, skipped, after(['bad', 'good', 'skipped'], 'any_succeeded')] },
    { script, expected: { ...succeeded, steps: { after: 'succeeded', skipped: 'skipped' } } },
  ),
  happy(
    'step.run_if',
    'all_done: a step runs in any case',
    { steps: [fail, skipped, after(['bad', 'skipped'], 'all_done')] },
    { script, expected: { ...succeeded, steps: { after: 'succeeded' } } },
  ),
  unhappy(
    'step.run_if',
    'any_failed: a step is skipped if no dependency failed',
    { steps: [good, skipped, after(['good', 'skipped'], 'any_failed')] },
    { script, expected: { ...succeeded, steps: { after: 'skipped' } } },
  ),
  unhappy(
    'step.run_if',
    'any_succeeded: a step is skipped if no dependency succeeded',
    { steps: [fail, skipped, after(['bad', 'skipped'], 'any_succeeded')] },
    { script, expected: { ...succeeded, steps: { after: 'skipped' } } },
  ),
  unhappy(
    'step.run_if',
    'by default a step is skipped if a dependency failed',
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
    'by default the run fails: running steps finish, no new step starts',
    {
      steps: [
        { ...fail, on_error: 'fail' },
        { id: 'slow', capability: 'slow' },
        { id: 'never', capability: 'x', depends_on: ['slow'] },
      ],
    },
    {
      script: { capabilities: { ...script.capabilities, slow: { replies: [{ delay: '3s' }] } } },
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
    'a paused run starts no step until it is resumed',
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
    'a cancelled run cancels its running steps and starts no others',
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
