import { keysOf } from '@capstan/core/residency/residency';
import { expect, it } from 'vitest';
import { createDueWork } from '../../../src/use-cases/runs/due-work.ts';
import { aDeliveryCtx } from '../../support/delivery.ts';
import { aRun } from '../../support/factories.ts';
import { echo, type Handler } from '../../support/fleet.ts';
import { stepsOf, useSteps } from '../../support/steps.ts';
import { waitFor } from '../../support/wait.ts';

const world = useSteps();
const { db } = world;

/** Each run calls the capability once, with a model. */
function runFor(capability: string, model: string, step: object = {}) {
  const definition = stepsOf([{ id: 'a', capability, input: { model }, ...step }]);
  return aRun(db, { ...definition, project_id: world.projectId() });
}

async function calledOf(capability: string): Promise<string[]> {
  const rows = await db('queued_call').where({ line: capability }).whereNotNull('called_at').select('loads');
  return rows.map(({ loads }) => keyOf(loads));
}

/** On an instance of its own project. */
function keyOf(loads: string): string {
  return keysOf(loads)[0] as string;
}

it('a free slot is for the first call in line whose key is loaded there, and the others keep their places', async () => {
  const open: (() => void)[] = [];
  const handle: Handler = (exec, response) => void open.push(() => echo(exec, response));
  const instance = await world.register({ name: 'image', affinity: '{{ input.model }}', max_concurrency: 1 });
  instance.handle = handle;
  await waitFor('its key to be known', async () => {
    await world.fleet().refresh();
    return world.fleet().all('image')[0]?.affinity != null;
  });
  await db('load_time').insert({
    owner_project: world.projectId(),
    name: 'image',
    key: '',
    warm_ms: 1_000,
    cold_ms: 60_000,
  });
  const first = world.newWorker().execute(await runFor('image', 'x'), 'a');
  await waitFor('the call to arrive', () => open.length === 1);
  const waiting = [
    await runFor('image', 'y'),
    await runFor('image', 'x'),
    await runFor('image', 'other', { affinity: '{{ input.model | replace("other", "x") }}' }),
  ];
  for (const run of waiting)
    expect(await world.newWorker().execute(run, 'a')).toMatchObject({ awaiting: 'slot' });
  const line = await db('queued_call').where({ line: 'image' }).orderBy('place').select('loads', 'place');
  expect(line.map(({ loads }) => keyOf(loads))).toEqual(['y', 'x', 'x']);
  open.pop()?.();
  expect(await first).toMatchObject({ kind: 'succeeded' });
  await world.fleet().refresh();
  await createDueWork({ ...aDeliveryCtx(db), fleet: world.fleet() })();
  expect(await calledOf('image')).toEqual(['x']);
  const counters = () => db('call_line').where({ line: 'image' });
  expect(await counters().first('served', 'turned_at')).toEqual({ served: '1', turned_at: null }); // it passes others
  const second = world.newWorker().execute(waiting[1] as never, { step_id: 'a', resumed: true });
  await waitFor('the call to arrive', () => open.length === 1);
  open.pop()?.();
  expect(await second).toMatchObject({ kind: 'succeeded' });
  expect(instance.execs.map(({ input }) => input.model)).toEqual(['x', 'x']);

  // The first call is called for a load once others have passed it for 25 loads, however long it has waited.
  const longAgo = db.raw(`clock_timestamp() - interval '1 hour'`);
  await db('queued_call').where({ line: 'image' }).update({ queued_at: longAgo });
  await counters().update({ turned_at: db.fn.now() });
  const dueWork = () => createDueWork({ ...aDeliveryCtx(db), fleet: world.fleet() })();
  await dueWork();
  expect(await calledOf('image')).toEqual(['x']);
  await db('queued_call').where({ line: 'image' }).update({ called_at: null });
  await counters().update({ turned_at: longAgo });
  await dueWork();
  expect(await calledOf('image')).toEqual(['y']);
});
