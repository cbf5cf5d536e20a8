import type { StepDefinition } from '@capstan/core/contracts/pipeline';
import { expect, it } from 'vitest';
import { aRun } from '../../support/factories.ts';
import { stepsOf, useSteps } from '../../support/steps.ts';

const world = useSteps();
const { db } = world;

function step(id: string, more: Partial<StepDefinition>): StepDefinition {
  return {
    id,
    capability: 'x',
    ...more,
  };
}

it('steps are decided in the order asked for, each by itself, from what is stored', async () => {
  const run = await aRun(db, {
    ...stepsOf([
      step('first', {}),
      step('odd', { on_error: 'continue' }),
      step('left', {}),
      step('yes', { when: 'steps.first.output.n > job.least' }),
      step('no', { when: '{{ steps.first.output.n == 0 }}' }),
      step('failed', { when: 'steps.odd.status == "failed" && steps.odd.error.code == "gone"' }),
      step('skipped', { when: 'steps.left.status == "skipped"' }),
      step('missing', { when: 'steps.left.output.n == 1' }),
      step('covered', { when: '(steps.left.output.n ?? 1) == 1' }),
      step('number', { when: 'steps.first.output.n' }),
      step('none', { when: 'job.least == 2', for_each: { items: '{{ steps.first.output.list }}' } }),
      step('unread', { when: 'job.least == 3', for_each: { items: '{{ job.nothing }}' } }),
      step('plain', {}),
    ]),
    job: { least: 2 },
  });
  const { run_id } = run;
  await db('step').insert([
    { run_id, step_id: 'first', state: 'reused', output: '{"n": 3, "list": []}' },
    { run_id, step_id: 'odd', state: 'failed', error: { code: 'gone', message: 'm' } },
    { run_id, step_id: 'left', state: 'skipped' },
  ]);
  const asked = ['plain', 'none', 'yes', 'no', 'failed', 'skipped', 'missing', 'covered', 'number', 'unread'];
  const unresolved = (message: string) => ({
    type: 'fail',
    error: { code: 'expression_unresolved', message: expect.stringContaining(message) },
  });
  const expected = [
    { type: 'go' },
    { type: 'go', items: 0 },
    { type: 'go' },
    { type: 'skip' },
    { type: 'go' },
    { type: 'go' },
    unresolved('when: steps.left.output'),
    { type: 'go' },
    unresolved('when: a boolean is needed, not a number'),
    { type: 'skip' },
  ];
  for (const worker of [world.newWorker(), world.newWorker()]) {
    expect(await worker.decide({ run_id, step_ids: asked })).toEqual(expected);
  }
  const rows = await db('step').where({ run_id }).orderBy('step_id').select('step_id', 'state', 'items');
  expect(rows.map(({ step_id, state, items }) => [step_id, state, items])).toEqual([
    ['first', 'reused', null],
    ['left', 'skipped', null],
    ['missing', 'failed', null],
    ['no', 'skipped', null],
    ['none', 'running', 0],
    ['number', 'failed', null],
    ['odd', 'failed', null],
    ['unread', 'skipped', null],
  ]);
  expect((await world.eventsOf(run)).slice(2)).toEqual([
    ...[
      'step.started none',
      'step.skipped no',
      'step.failed missing',
      'step.failed number',
      'step.skipped unread',
    ],
  ]);
});

it('a run that does not exist, or has no such step, is refused', async () => {
  const run = await aRun(db);
  const worker = world.newWorker();
  await expect(worker.decide({ run_id: 'run_none', step_ids: ['a'] })).rejects.toMatchObject({
    code: 'not_found',
  });
  await expect(worker.decide({ ...run, step_ids: ['z'] })).rejects.toMatchObject({ code: 'not_found' });
});

it('an answer that would be too large leaves the last ones to the next one, and there is always one', async () => {
  const long = `{{ job.${'a'.repeat(3_000)} == 1 }}`;
  const ids = Array.from({ length: 120 }, (_, at) => `s${at}`);
  const run = await aRun(db, stepsOf(ids.map((id) => step(id, { when: long }))));
  const worker = world.newWorker();
  const told: unknown[] = [];
  let answers = 0;
  while (told.length < ids.length) {
    const verdicts = await worker.decide({ run_id: run.run_id, step_ids: ids.slice(told.length) });
    expect(verdicts.length).toBeGreaterThan(0);
    expect(JSON.stringify(verdicts).length).toBeLessThan(400_000);
    told.push(...verdicts);
    answers += 1;
  }
  expect(answers).toBeGreaterThan(1);
  expect(told).toHaveLength(ids.length);
});

it('a condition that takes too much work fails its step with the place, and no other', async () => {
  const run = await aRun(db, {
    ...stepsOf([
      step('heavy', { when: `(job.text${' | trim | lower'.repeat(400)} | length) > 0` }),
      step('items', { for_each: { items: `{{ job.numbers${' | sort'.repeat(100)} }}` } }),
      step('light', { when: 'job.text != ""' }),
    ]),
    job: { text: 'x'.repeat(200_000), numbers: Array.from({ length: 20_000 }, (_, at) => at) },
  });
  const refused = (place: string) => ({
    type: 'fail',
    error: { code: 'expression_limit', message: expect.stringMatching(`units of work \\(at ${place}\\)$`) },
  });
  const { run_id } = run;
  const asked = ['heavy', 'items', 'light'];
  expect(await world.newWorker().decide({ run_id, step_ids: asked })).toEqual([
    refused('/steps/0/when'),
    refused('/steps/1/for_each/items'),
    { type: 'go' },
  ]);
});
