import { expect, it, test } from 'vitest';
import type { PipelineDefinition, StepDefinition } from '../../src/contracts/pipeline.ts';
import { planRun, raceOf } from '../../src/run/plan.ts';

function aDefinition(steps: readonly Partial<StepDefinition>[], rest: Partial<PipelineDefinition> = {}) {
  return {
    pipeline: 'p',
    version: '1.0.0',
    steps: steps.map((step, at) => ({ id: `s${at}`, capability: 'echo', ...step })),
    ...rest,
  } as PipelineDefinition;
}

function planOne(step: Partial<StepDefinition>, rest: Partial<PipelineDefinition> = {}) {
  return planRun(aDefinition([step], rest)).steps[0];
}

const plain = planOne({});

test('a step without rules has its name, its edges and its time alone', () => {
  expect(planRun(aDefinition([{}, { depends_on: ['s0'] }]))).toEqual({
    max_in_flight: 200,
    steps: [
      {
        id: 's0',
        capability: 'echo',
        dependencies: [],
        escalates: true,
        total_timeout_ms: expect.any(Number),
      },
      {
        id: 's1',
        capability: 'echo',
        dependencies: [0],
        escalates: true,
        total_timeout_ms: expect.any(Number),
      },
    ],
  });
});

it.each<[string, Partial<StepDefinition>, object]>([
  ['run_if', { run_if: 'any_failed' }, { run_if: 'any_failed' }],
  ['run_if with its default', { run_if: 'all_succeeded' }, {}],
  ['when', { when: '1 == 1' }, { decides: true }],
  ['for_each', { for_each: { items: '{{ job.items }}' } as never }, { decides: true, each: {} }],
  [
    'for_each with its limits',
    { for_each: { items: '{{ job.items }}', max_parallel: 3, tolerate: 2 } as never },
    { decides: true, each: { max_parallel: 3, tolerate: 2 } },
  ],
  ['on_error: continue', { on_error: 'continue' }, { continues: true }],
  ['on_error: fail', { on_error: 'fail' } as never, {}],
  ['dispatch: inline', { dispatch: 'inline' } as never, { inline: true }],
  ['dispatch: queued', { dispatch: 'queued' } as never, {}],
])('a step with %s has that in its plan', (_, step, more) => {
  expect(planOne(step)).toStrictEqual({ ...plain, ...more });
});

test('a step with values needs no queue', () => {
  expect(planOne({ capability: undefined, set: { a: 1 } } as never)).toMatchObject({
    capability: 'set',
    inline: true,
  });
});

test('existing results are named by the places of their steps', () => {
  const definition = aDefinition([{}, {}, {}]);
  expect(planRun(definition, { reused: ['s2', 's0'] }).reused).toEqual([0, 2]);
  expect(planRun(definition, { skipped: ['s1'] }).skipped).toEqual([1]);
  const plan = planRun(definition, { reused: [], skipped: [] });
  expect([Object.hasOwn(plan, 'reused'), Object.hasOwn(plan, 'skipped')]).toEqual([false, false]);
});

test('steps that only a race needs may fail, and are called off', () => {
  const { steps } = planRun(
    aDefinition([
      { id: 'a' },
      { id: 'b', depends_on: ['a'] },
      { id: 'c', on_error: 'fail', dispatch: 'inline' },
      { id: 'j', depends_on: ['c', 'b'], first: 1 },
    ] as never),
  );
  expect(
    steps.map(({ is_callable_off, continues, inline, race }) => ({
      is_callable_off,
      continues,
      inline,
      race,
    })),
  ).toEqual([
    { is_callable_off: true, continues: true },
    { is_callable_off: true, continues: true },
    { is_callable_off: true },
    { race: { count: 1, of: [1, 2] } },
  ]);
});

test('a step of which some items are enough may be called off', () => {
  const each = { items: '{{ job.items }}', enough: 2 };
  expect(planOne({ for_each: each, dispatch: 'inline' } as never)).toStrictEqual({
    ...plain,
    decides: true,
    each: { enough: 2 },
    is_callable_off: true,
  });
});

test('the steps of a race are in their order, whatever the order of their names', () => {
  const indexOf = new Map(['a', 'b', 'c', 'd'].map((id, index) => [id, index]));
  const depends_on = ['d', 'b', 'a', 'c'];
  expect(raceOf({ indexOf }, { id: 'j', first: 2, depends_on })).toEqual({ count: 2, of: [0, 1, 2, 3] });
  expect(raceOf({ indexOf }, { id: 'j', depends_on })).toBeNull();
});
