import { type ConformanceCase, echo, failsOnce, happy, refused, succeeded, unhappy } from '../case.ts';

const one = { steps: [{ id: 'a', capability: 'x' }] };
const script = { capabilities: { x: echo } };
const paid = { cost_model: { type: 'per_call', rate_usd: 0.6 } } as const;
const two = {
  steps: [
    { id: 'a', capability: 'x' },
    { id: 'b', capability: 'x', depends_on: ['a'], optional: true },
  ],
};

export const pipelineCases: readonly ConformanceCase[] = [
  happy(
    'pipeline.pipeline',
    'expressions see the name of the pipeline',
    { ...one, pipeline: 'named', output: '{{ run.pipeline }}' },
    { script, expected: { ...succeeded, output: 'named' } },
  ),
  unhappy(
    'pipeline.pipeline',
    'a name with a space is refused',
    { ...one, pipeline: 'a b' },
    refused('value_invalid', '/pipeline'),
  ),
  happy(
    'pipeline.version',
    'expressions see the version',
    { ...one, version: '3.1', output: '{{ run.version }}' },
    { script, expected: { ...succeeded, output: '3.1' } },
  ),
  unhappy(
    'pipeline.version',
    'a version that is a number is refused',
    { ...one, version: 2 },
    refused('type_invalid', '/version'),
  ),
  happy(
    'pipeline.description',
    'a description changes nothing',
    { ...one, description: 'one step' },
    { script, expected: succeeded },
  ),
  unhappy(
    'pipeline.description',
    'a description that is no text is refused',
    { ...one, description: ['one step'] },
    refused('type_invalid', '/description'),
  ),
  happy(
    'pipeline.job_schema',
    'a job that matches runs',
    { ...one, job_schema: { type: 'object', required: ['n'] } },
    { script, job: { n: 1 }, expected: succeeded },
  ),
  unhappy(
    'pipeline.job_schema',
    'a job that does not match is refused before anything happens',
    { ...one, job_schema: { type: 'object', required: ['n'] } },
    { script, job: {}, expected: { refused: 'job_invalid' } },
  ),
  happy(
    'pipeline.defaults',
    'a step takes the defaults that it does not name itself',
    { ...one, defaults: { retry: { max: 1, initial: '10ms' } } },
    {
      script: { capabilities: { x: failsOnce } },
      expected: { ...succeeded, steps: { a: { state: 'succeeded', attempts: 2 } } },
    },
  ),
  unhappy(
    'pipeline.defaults',
    'what a step names itself goes before the defaults',
    {
      steps: [{ id: 'a', capability: 'x', retry: { max: 0 } }],
      defaults: { retry: { max: 1, initial: '10ms' } },
    },
    {
      script: { capabilities: { x: failsOnce } },
      expected: { outcome: 'failed', error: 'step_failed', calls: { x: 1 } },
    },
  ),
  unhappy(
    'pipeline.defaults',
    'a step that may be delivered once only cannot take dispatch: inline from them',
    { steps: [{ id: 'a', capability: 'x', retry: { max: 0 } }], defaults: { dispatch: 'inline' } },
    refused('dispatch_conflict', '/steps/0'),
  ),
  happy(
    'pipeline.budget_ceiling_usd',
    'calls happen while the ceiling of the run has room',
    { ...two, budget_ceiling_usd: 1.2 },
    { script: { capabilities: { x: paid } }, expected: { ...succeeded, calls: { x: 2 } } },
  ),
  unhappy(
    'pipeline.budget_ceiling_usd',
    'a call that exceeds the rest of the budget waits for a review, and continues when the budget is raised',
    { ...two, budget_ceiling_usd: 1 },
    {
      script: {
        capabilities: { x: paid },
        budget_reviews: [{ action: 'raise', budget_ceiling_usd: 2 }],
      },
      expected: { ...succeeded, calls: { x: 2 } },
    },
  ),
  unhappy(
    'pipeline.budget_ceiling_usd',
    'a call that costs more than the whole budget waits for a review too',
    { ...two, budget_ceiling_usd: 0.1 },
    {
      script: {
        capabilities: { x: paid },
        budget_reviews: [{ action: 'raise', budget_ceiling_usd: 2 }],
      },
      expected: { ...succeeded, calls: { x: 2 } },
    },
  ),
  unhappy(
    'pipeline.budget_ceiling_usd',
    'a person may skip what there is no money for',
    { ...two, budget_ceiling_usd: 1 },
    {
      script: { capabilities: { x: paid }, budget_reviews: [{ action: 'skip' }] },
      expected: { ...succeeded, steps: { a: 'succeeded', b: 'skipped' }, calls: { x: 1 } },
    },
  ),
  happy(
    'pipeline.priority',
    'a run may be batch',
    { ...one, priority: 'batch' },
    { script, expected: succeeded },
  ),
  unhappy(
    'pipeline.priority',
    'a priority that does not exist is refused',
    { ...one, priority: 'urgent' },
    refused('value_invalid', '/priority'),
  ),
  happy(
    'pipeline.concurrency',
    'a run below the limit begins',
    { ...one, concurrency: { key: 'one', limit: 1 } },
    { script, expected: succeeded },
  ),
  unhappy(
    'pipeline.concurrency',
    'a limit without a key is refused',
    { ...one, concurrency: { limit: 1 } },
    refused('key_missing', '/concurrency/key'),
  ),
  happy(
    'concurrency.key',
    'a key may hold a value of the job',
    { ...one, concurrency: { key: 'of-{{ job.customer }}', limit: 1 } },
    { script, job: { customer: 'ada' }, expected: succeeded },
  ),
  unhappy(
    'concurrency.key',
    'a key that mentions a step is refused',
    { ...one, concurrency: { key: '{{ steps.a.output.n }}', limit: 1 } },
    refused('root_unavailable', '/concurrency/key'),
  ),
  happy(
    'concurrency.limit',
    'a limit of many lets one begin',
    { ...one, concurrency: { key: 'many', limit: 1_000 } },
    { script, expected: succeeded },
  ),
  unhappy(
    'concurrency.limit',
    'a limit of none is refused',
    { ...one, concurrency: { key: 'none', limit: 0 } },
    refused('value_invalid', '/concurrency/limit'),
  ),
  happy(
    'concurrency.on_limit',
    'a run below the limit begins, also where those above it are refused',
    { ...one, concurrency: { key: 'rejecting', limit: 1, on_limit: 'reject' } },
    { script, expected: succeeded },
  ),
  unhappy(
    'concurrency.on_limit',
    'a run above the limit has one of two results',
    { ...one, concurrency: { key: 'k', limit: 1, on_limit: 'wait' } },
    refused('value_invalid', '/concurrency/on_limit'),
  ),
  happy(
    'pipeline.timeout',
    'a run that ends in time succeeds',
    { ...one, timeout: '60s' },
    {
      script,
      expected: succeeded,
    },
  ),
  unhappy(
    'pipeline.timeout',
    'a run whose time is over fails, and what runs is cancelled',
    { ...two, timeout: '300ms' },
    {
      script: { capabilities: { x: { replies: [{ delay: '60s' }] } } },
      expected: { outcome: 'failed', error: 'run_timeout', steps: { a: 'cancelled', b: 'skipped' } },
    },
  ),
  happy(
    'pipeline.labels',
    'labels change nothing',
    { ...one, labels: { team: 'film' } },
    {
      script,
      expected: succeeded,
    },
  ),
  unhappy(
    'pipeline.labels',
    'a label that is no text is refused',
    { ...one, labels: { team: 7 } },
    refused('type_invalid', '/labels/team'),
  ),
  happy(
    'pipeline.steps',
    'steps without mutual need all happen',
    { steps: ['a', 'b', 'c'].map((id) => ({ id, capability: 'x' })) },
    { script, expected: { ...succeeded, calls: { x: 3 } } },
  ),
  unhappy(
    'pipeline.steps',
    'a pipeline without steps is refused',
    { steps: [] },
    refused('value_invalid', '/steps'),
  ),
  happy(
    'pipeline.output',
    'the output is any JSON, with expressions',
    { steps: [{ id: 'a', capability: 'x', input: { n: 7 } }], output: { of: ['{{ steps.a.output.n }}', 1] } },
    { script, expected: { ...succeeded, output: { of: [7, 1] } } },
  ),
  happy(
    'pipeline.output',
    'without one it is the outputs of the last steps, by id',
    {
      steps: [
        { id: 'a', capability: 'x', input: { n: 1 } },
        { id: 'b', capability: 'x', input: { n: 2 }, depends_on: ['a'] },
        { id: 'c', capability: 'x', input: { n: 3 } },
      ],
    },
    { script, expected: { ...succeeded, output: { b: { n: 2 }, c: { n: 3 } } } },
  ),
  unhappy(
    'pipeline.output',
    'an output whose value is missing makes the run fail, with its steps as they are',
    { ...one, output: '{{ steps.a.output.nothing }}' },
    {
      script,
      expected: { outcome: 'failed', error: 'expression_unresolved', steps: { a: 'succeeded' } },
    },
  ),
];
