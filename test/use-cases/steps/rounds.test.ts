import type { StepDefinition } from '@capstan/core/contracts/pipeline';
import { mentionWhole } from '@capstan/core/expression/large-outputs';
import { describe, expect, it } from 'vitest';
import { listRunSteps, listStepItems } from '../../../src/db/step/step.ts';
import { recordChanges } from '../../../src/db/step/step-progress.ts';
import { judgeStoredRound } from '../../../src/use-cases/steps/rounds.ts';
import { aRun } from '../../support/factories.ts';
import { answer } from '../../support/fleet.ts';
import { stepsOf, useSteps } from '../../support/steps.ts';

const world = useSteps();
const { db } = world;

function poll(more: Partial<NonNullable<StepDefinition['repeat']>> = {}): StepDefinition {
  return {
    id: 'poll',
    capability: 'ask',
    input: { at: '{{ round.index }}', before: '{{ round.previous ?? "nothing" }}' },
    repeat: { until: 'round.output.at == 1', max: 5, ...more },
  };
}

/** A run whose step has begun, and a worker that has made its first round. */
async function aPolledRun(step: StepDefinition) {
  const run = await aRun(db, { ...stepsOf([step]), project_id: world.projectId() });
  const worker = world.newWorker();
  expect(await worker.decide({ run_id: run.run_id, step_ids: ['poll'] })).toEqual([{ type: 'go', items: 1 }]);
  const makeRound = (item: number) => worker.execute(run, { step_id: 'poll', item, resumed: item > 1 });
  expect(await makeRound(1)).toMatchObject({ kind: 'succeeded' });
  const judge = (item: number) => judgeStoredRound(worker.ctx, { run_id: run.run_id, step_id: 'poll', item });
  return { run, worker, judge, makeRound };
}

describe('the rounds of a step', () => {
  it('are judged from stored outputs; a repeated judgement is the same and stores nothing twice', async () => {
    const ask = await world.register({ name: 'ask', cost_model: { type: 'per_call', rate_usd: 0.5 } });
    ask.handle = ({ input }, response) => answer(response, 200, { ok: true, output: { at: input.at } });
    const { run, worker, judge, makeRound } = await aPolledRun(poll({ pause: '1h' }));
    const first = await judge(1);
    expect(first).toEqual({ type: 'again', until: expect.any(Number) });
    expect(await judge(1)).toEqual(first);
    const open = await listStepItems(db, { ...run, step_id: 'poll' }, { limit: 9 });
    expect(open).toMatchObject([
      { item: 1, state: 'succeeded' },
      { item: 2, state: 'waiting', awaiting: 'time' },
    ]);
    expect(open[1]?.wait_until?.getTime()).toBe(Math.round((first as { until: number }).until));
    expect(await makeRound(2)).toMatchObject({ kind: 'succeeded' });
    expect(ask.execs.map(({ input }) => input)).toEqual([
      { at: 0, before: 'nothing' },
      { at: 1, before: { at: 0 } },
    ]);
    for (const _ of [1, 2]) expect(await judge(2)).toEqual({ type: 'done' });
    expect((await world.eventsOf(run)).slice(2)).toEqual([
      ...['step.started poll', 'step.started poll[1]', 'step.routed poll[1]', 'step.succeeded poll[1]'],
      ...['step.round poll[1]', 'step.waiting poll[2]'],
      ...['step.started poll[2]', 'step.routed poll[2]', 'step.succeeded poll[2]'],
      ...['step.round poll[2]', 'step.succeeded poll'],
    ]);
    const [whole] = await listRunSteps(db, run.run_id);
    expect(whole).toMatchObject({
      state: 'succeeded',
      attempts: 2,
      cost_nano: '1000000000',
      item_states: { succeeded: 2 },
    });
    const { steps } = await worker.ctx.results.scopeOf(run.run_id, mentionWhole(['poll']));
    expect(steps.poll).toMatchObject({ output: { at: 1 }, cost_usd: 1 }); // its own output, not a list
    expect(await worker.ctx.results.sizesOf(run.run_id, ['poll'])).toEqual(new Map([['poll', 8]]));
  });

  it('skip their step where a person skipped one of them, with that reason', async () => {
    await world.register({ name: 'ask' });
    const { run } = await aPolledRun(poll());
    await recordChanges(db, run.run_id, [{ step_id: 'poll', item: 0, state: 'skipped' }]);
    const skipped = await db('event').where({ run_id: run.run_id, type: 'step.skipped' }).first('data');
    expect(skipped.data).toEqual({ reason: 'round' });
  });

  it('of an ended run are opened no more', async () => {
    await world.register({ name: 'ask' });
    const { run, judge } = await aPolledRun(poll());
    await db('run').where({ run_id: run.run_id }).update({ state: 'cancelled', finished_at: new Date() });
    await judge(1);
    expect(await listStepItems(db, { ...run, step_id: 'poll' }, { limit: 9 })).toHaveLength(1);
  });
});
