/** Steps that wait for an outside event. */
import { echo, happy, refused, succeeded, unhappy } from '../case.ts';

const script = { capabilities: { x: echo } };
const paid = { id: 'paid', event: { name: 'paid', key: '{{ job.order }}' } };
const job = { order: 7 };
const timedOut = { state: 'failed', error: 'step_timeout' } as const;

export const eventCases = [
  happy(
    'step.event',
    'the payload of the event is the output of the step',
    { steps: [paid, { id: 'b', capability: 'x', input: { sum: '{{ steps.paid.output.sum }}' } }] },
    {
      job,
      script: { ...script, events: [{ name: 'paid', key: '7', after: '300ms', payload: { sum: 12 } }] },
      expected: { ...succeeded, steps: { paid: { attempts: 0 }, b: { output: { sum: 12 } } } },
    },
  ),
  happy(
    'step.event',
    'the step uses an event that came before it waits',
    {
      steps: [
        { id: 'a', wait: '300ms' },
        { ...paid, depends_on: ['a'] },
      ],
    },
    {
      job,
      script: { events: [{ name: 'paid', key: '7', payload: [1, null] }] },
      expected: { ...succeeded, output: { paid: [1, null] } },
    },
  ),
  happy(
    'step.event',
    'all steps that wait for one event take it',
    { steps: [paid, { ...paid, id: 'also' }] },
    {
      job,
      script: { events: [{ name: 'paid', key: '7', after: '300ms', payload: 'yes' }] },
      expected: { ...succeeded, output: { also: 'yes', paid: 'yes' } },
    },
  ),
  happy(
    'step.event',
    'an event that comes during a pause of the run is used after it',
    { steps: [paid, { id: 'b', capability: 'x', input: { sum: '{{ steps.paid.output.sum }}' } }] },
    {
      job,
      script: {
        ...script,
        events: [{ name: 'paid', key: '7', after: '600ms', payload: { sum: 12 } }],
        control: [
          { at: '200ms', action: 'pause' },
          { at: '1200ms', action: 'resume' },
        ],
      },
      expected: { ...succeeded, steps: { paid: 'succeeded', b: { output: { sum: 12 } } }, calls: { x: 1 } },
    },
  ),
  unhappy(
    'step.event',
    'a second wait is for a second event',
    { steps: [paid, { id: 'b', event: { ...paid.event, timeout: '300ms' }, depends_on: ['paid'] }] },
    {
      job,
      script: { events: [{ name: 'paid', key: '7', payload: 1 }] },
      expected: { outcome: 'failed', steps: { paid: { output: 1 }, b: timedOut } },
    },
  ),
  unhappy(
    'step.event',
    'a cancelled run waits no longer',
    { steps: [paid] },
    {
      job,
      script: { control: [{ at: '300ms', action: 'cancel' }] },
      expected: { outcome: 'cancelled', steps: { paid: 'cancelled' } },
    },
  ),
  unhappy(
    'step.event',
    'a retry has no meaning for it',
    { steps: [{ ...paid, retry: { max: 1 } }] },
    refused('key_not_applicable', '/steps/0/retry'),
  ),
  happy(
    'event.name',
    'an event of another name is not taken',
    { steps: [{ id: 'a', event: { name: 'ship.sent' } }] },
    {
      script: {
        events: [
          { name: 'ship.lost', payload: 1 },
          { name: 'ship.sent', after: '300ms', payload: 2 },
        ],
      },
      expected: { ...succeeded, output: { a: 2 } },
    },
  ),
  unhappy(
    'event.name',
    'a name with a space is refused',
    { steps: [{ id: 'a', event: { name: 'ship sent' } }] },
    refused('value_invalid', '/steps/0/event/name'),
  ),
  happy(
    'event.key',
    'each item waits for the event of its key, beyond max_parallel',
    {
      steps: [
        {
          id: 'each',
          event: { name: 'done', key: 'part-{{ item }}' },
          for_each: { items: '{{ job.parts }}', max_parallel: 1 },
        },
      ],
    },
    {
      job: { parts: ['a', 'b', 'c'] },
      script: {
        events: [
          { name: 'done', key: 'part-c', after: '300ms', payload: 3 },
          { name: 'done', key: 'part-a', after: '400ms', payload: 1 },
          { name: 'done', key: 'part-b', after: '500ms', payload: 2 },
        ],
      },
      expected: { ...succeeded, output: { each: [1, 2, 3] } },
    },
  ),
  unhappy(
    'event.key',
    'an event without the key is not taken',
    { steps: [{ id: 'paid', event: { ...paid.event, timeout: '400ms' } }] },
    {
      job,
      script: { events: [{ name: 'paid', payload: 1 }] },
      expected: { outcome: 'failed', steps: { paid: timedOut } },
    },
  ),
  unhappy(
    'event.key',
    'a key without a value fails the step',
    { steps: [{ id: 'a', event: { name: 'paid', key: '{{ job.missing }}' } }] },
    { expected: { outcome: 'failed', steps: { a: { state: 'failed', error: 'expression_unresolved' } } } },
  ),
  happy(
    'event.schema',
    'only the waiting step whose schema the payload matches takes it',
    {
      steps: [
        { id: 'a', event: { name: 'n', schema: { type: 'number' } } },
        { id: 'b', event: { name: 'n', schema: { type: 'string' } } },
      ],
    },
    {
      script: {
        events: [
          { name: 'n', after: '300ms', payload: 1 },
          { name: 'n', after: '600ms', payload: 'one' },
        ],
      },
      expected: { ...succeeded, output: { a: 1, b: 'one' } },
    },
  ),
  unhappy(
    'event.schema',
    'what its payload cannot have is refused in later steps',
    {
      steps: [
        {
          id: 'a',
          event: { name: 'n', schema: { type: 'object', properties: { sum: { type: 'number' } } } },
        },
        { id: 'b', set: { total: '{{ steps.a.output.sum | upper }}' } },
      ],
    },
    refused('operand_invalid', '/steps/1/set/total'),
  ),
  unhappy(
    'event.schema',
    'a kept event that does not match is passed over',
    {
      steps: [
        { id: 'a', wait: '300ms' },
        { id: 'n', depends_on: ['a'], event: { name: 'n', schema: { type: 'number' }, timeout: '300ms' } },
      ],
    },
    {
      script: { events: [{ name: 'n', payload: 'none' }] },
      expected: { outcome: 'failed', steps: { n: timedOut } },
    },
  ),
  happy(
    'event.timeout',
    'the step uses an event within it',
    { steps: [{ id: 'a', event: { name: 'n', timeout: '20s' } }] },
    {
      script: { events: [{ name: 'n', after: '300ms' }] },
      expected: { ...succeeded, output: { a: null } },
    },
  ),
  unhappy(
    'event.timeout',
    'without an event, the step fails when it is over',
    { steps: [{ id: 'a', event: { name: 'n', timeout: '300ms' } }] },
    { expected: { outcome: 'failed', error: 'step_failed', steps: { a: timedOut } } },
  ),
  unhappy(
    'event.timeout',
    'more than 90 days are refused',
    { steps: [{ id: 'a', event: { name: 'n', timeout: '91d' } }] },
    refused('duration_out_of_range', '/steps/0/event/timeout'),
  ),
  happy(
    'event.on_timeout',
    'continue: the step succeeds without an output',
    {
      steps: [
        { id: 'a', event: { name: 'n', timeout: '300ms', on_timeout: 'continue' } },
        { id: 'b', set: { came: '{{ (steps.a.output != null) }}' } },
      ],
    },
    { expected: { ...succeeded, steps: { a: { output: null }, b: { output: { came: false } } } } },
  ),
  unhappy(
    'event.on_timeout',
    'fail: a later step that does not need it can continue',
    {
      steps: [
        { id: 'a', event: { name: 'n', timeout: '300ms', on_timeout: 'fail' }, on_error: 'continue' },
        { id: 'b', capability: 'x', depends_on: ['a'], run_if: 'any_failed' },
      ],
    },
    { script, expected: { ...succeeded, steps: { a: timedOut, b: 'succeeded' } } },
  ),
];
