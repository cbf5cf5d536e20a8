import { expect, it, test } from 'vitest';
import type { StepDefinition } from '../../../src/contracts/pipeline.ts';
import { checkDefinition } from '../../../src/definition/checks/check-definition.ts';
import { aDefinition } from './a-definition.ts';

function findingsOf(step: Partial<StepDefinition>, more: StepDefinition[] = []) {
  return checkDefinition(aDefinition({ steps: [...more, { id: 'x', ...step }] }), {
    knownCapabilities: null,
    strict: false,
  });
}

const kinds = {
  capability: { capability: 'concat' },
  pipeline: { pipeline: 'reel@1' },
  wait: { wait: '30s' },
  review: { review: { title: 'ok?' } },
  set: { set: { a: 1 } },
} as const satisfies Record<string, Partial<StepDefinition>>;

const keys: [kinds: string, Partial<StepDefinition>][] = [
  ['capability pipeline wait review set', { depends_on: [] }],
  ['capability pipeline wait review set', { when: 'job.x' }],
  ['capability pipeline wait review set', { run_if: 'all_done' }],
  ['capability pipeline wait review set', { for_each: { items: [1], max_parallel: 2, tolerate: 1 } }],
  ['capability pipeline wait review set', { on_error: 'continue' }],
  ['capability pipeline wait review set', { description: 'x' }],
  ['capability pipeline review', { input: {} }],
  ['capability pipeline', { priority: 'batch' }],
  ['capability pipeline', { budget_ceiling_usd: 1 }],
  ['capability review', { optional: true }],
  ['capability', { retry: { max: 1 } }],
  ['capability', { timeout: '1m' }],
  ['capability', { total_timeout: '1h' }],
  ['capability', { escalate: { max_level: 1 } }],
  ['capability', { capability_version: '^1.0.0' }],
  ['capability', { tags: ['local'] }],
  ['capability', { dispatch: 'inline' }],
  ['capability', { wait_for_capability: '1h' }],
  ['capability', { allow_output: true }],
];

it.each(keys)('%s: %j', (allowed, key) => {
  const [name] = Object.keys(key);
  for (const [kind, step] of Object.entries(kinds)) {
    const expected = allowed.split(' ').includes(kind)
      ? []
      : [{ severity: 'error', code: 'key_not_applicable', pointer: `/steps/0/${name}` }];
    expect(findingsOf({ ...step, ...key }), kind).toMatchObject(expected);
    expect(findingsOf({ ...step, ...key }), kind).toHaveLength(expected.length);
  }
});

test('a step is one thing', () => {
  expect(findingsOf({})).toMatchObject([
    { code: 'kind_missing', message: expect.stringContaining('capability, pipeline, wait, review') },
  ]);
  expect(findingsOf({ ...kinds.wait, ...kinds.capability })).toMatchObject([
    {
      code: 'kind_several',
      pointer: '/steps/0/wait',
      message: expect.stringContaining('capability and wait'),
    },
  ]);
});

test('a step that is delivered at most once is not dispatched inline', () => {
  const conflict = [{ code: 'dispatch_conflict', pointer: '/steps/0/dispatch' }];
  const inline = { ...kinds.capability, dispatch: 'inline' } as const;
  expect(findingsOf({ ...inline, retry: { max: 0 } })).toMatchObject(conflict);
  expect(findingsOf(inline)).toEqual([]);
  const defaults = { retry: { max: 0 } };
  const definition = aDefinition({ defaults, steps: [{ id: 'x', ...inline }] });
  expect(checkDefinition(definition, { knownCapabilities: null, strict: false })).toMatchObject(conflict);
  expect(findingsOf({ ...kinds.capability, dispatch: 'auto', retry: { max: 0 } })).toEqual([]);
  const once = { ...kinds.capability, retry: { max: 0 } };
  const steps: StepDefinition[] = [
    { id: 'a', ...once },
    { id: 'b', ...once, dispatch: 'queued' },
    { id: 'c', ...kinds.wait },
    { id: 'd', ...kinds.capability },
  ];
  const all = aDefinition({ defaults: { dispatch: 'inline' }, steps });
  expect(checkDefinition(all, { knownCapabilities: null, strict: false })).toEqual([
    expect.objectContaining({ code: 'dispatch_conflict', pointer: '/steps/0' }),
  ]);
});

test('a condition on other steps needs some, and failures that the run survives', () => {
  const before = (on_error?: 'continue'): StepDefinition[] => [
    { id: 'a', capability: 'concat', ...(on_error && { on_error }) },
  ];
  const step = { ...kinds.capability, depends_on: ['a'] };
  expect(findingsOf({ ...kinds.capability, run_if: 'any_succeeded' })).toMatchObject([
    { code: 'run_if_unused' },
  ]);
  expect(findingsOf({ ...kinds.capability, run_if: 'any_failed' })).toMatchObject([
    { code: 'run_if_unused' },
  ]);
  expect(findingsOf({ ...step, run_if: 'any_succeeded' }, before())).toEqual([]);
  expect(findingsOf({ ...step, run_if: 'any_failed' }, before())).toMatchObject([
    { severity: 'warning', code: 'step_never_runs' },
  ]);
  expect(findingsOf({ ...step, run_if: 'any_failed' }, before('continue'))).toEqual([]);
});

const durations: [step: Partial<StepDefinition>, isAllowed: boolean][] = [
  [{ wait: '90d' }, true],
  [{ wait: '2161h' }, false],
  [{ wait: '0s' }, false],
  [{ review: { title: 'ok?', timeout: '90d' } }, true],
  [{ review: { title: 'ok?', timeout: '91d' } }, false],
  [{ ...kinds.capability, wait_for_capability: '0s' }, true],
  [{ ...kinds.capability, wait_for_capability: '8d' }, false],
];

it.each(durations)('%j: allowed %s', (step, isAllowed) => {
  expect(findingsOf(step).map(({ code }) => code)).toEqual(isAllowed ? [] : ['duration_out_of_range']);
});
