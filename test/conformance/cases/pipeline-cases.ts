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
    'a description that is not a text is refused',
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
    'a job that does not match is refused before any step starts',
    { ...one, job_schema: { type: 'object', required: ['n'] } },
    { script, job: {}, expected: { refused: 'job_invalid' } },
  ),
  happy(
    'pipeline.defaults',
    'a step uses the defaults for keys that it does not set',
    { ...one, defaults: { retry: { max: 1, initial: '10ms' } } },
    {
      script: { capabilities: { x: failsOnce } },
      expected: { ...succeeded, steps: { a: { state: 'succeeded', attempts: 2 } } },
    },
  ),
  unhappy(
    'pipeline.defaults',
    'a key that a step sets overrides the default',
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
    'a step with retry.max 0 cannot use dispatch: inline from the defaults',
    { steps: [{ id: 'a', capability: 'x', retry: { max: 0 } }], defaults: { dispatch: 'inline' } },
    refused('dispatch_conflict', '/steps/0'),
  ),
  happy(
    'pipeline.budget_ceiling_usd',
    'calls are made while the budget of the run has room',
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
    'a person may skip an optional step that waits for budget',
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
    'a run below the limit starts',
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
    'with a higher limit, one run starts',
    { ...one, concurrency: { key: 'many', limit: 1_000 } },
    { script, expected: succeeded },
  ),
  unhappy(
    'concurrency.limit',
    'a limit of 0 is refused',
    { ...one, concurrency: { key: 'none', limit: 0 } },
    refused('value_invalid', '/concurrency/limit'),
  ),
  happy(
    'concurrency.on_limit',
    'with reject, a run below the limit starts',
    { ...one, concurrency: { key: 'rejecting', limit: 1, on_limit: 'reject' } },
    { script, expected: succeeded },
  ),
  happy(
    'concurrency.on_limit',
    'with cancel_oldest, a run alone with its key is not cancelled',
    { ...one, concurrency: { key: 'replacing', limit: 1, on_limit: 'cancel_oldest' } },
    { script, expected: succeeded },
  ),
  unhappy(
    'concurrency.on_limit',
    'any other value is refused',
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
    'a run that exceeds its timeout fails, and its running steps are cancelled',
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
    'a label that is not a text is refused',
    { ...one, labels: { team: 7 } },
    refused('type_invalid', '/labels/team'),
  ),
  happy(
    'pipeline.steps',
    'steps that do not depend on each other all run',
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
    'without output, the output is the outputs of the last steps, by id',
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
    'if a value of the output is missing, the run fails and its steps keep their states',
    { ...one, output: '{{ steps.a.output.nothing }}' },
    {
      script,
      expected: { outcome: 'failed', error: 'expression_unresolved', steps: { a: 'succeeded' } },
    },
  ),
];
