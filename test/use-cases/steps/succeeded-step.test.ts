/** A step that has succeeded is answered from its row, whatever has become of the instances since. */
import { expect, test } from 'vitest';
import { aRun, type StoredRun } from '../../support/factories.ts';
import type { Instance } from '../../support/fleet.ts';
import { aloneInBatch, type StepOf, useSteps } from '../../support/steps.ts';
import { waitFor } from '../../support/wait.ts';

const { db, newWorker, register, statesOf } = useSteps();

/** A run whose only step has succeeded; the instance is gone since, as the router knows. */
async function aDoneRun(name: string): Promise<{ readonly run: StoredRun; readonly instance: Instance }> {
  const instance = await register({ name });
  await waitFor('the instance to be up', () => statesOf(name)[0] === 'up');
  const run = await aRun(db, { definition: { steps: [{ id: 'a', capability: name, input: { n: 1 } }] } });
  await newWorker().execute(run, 'a');
  await db('instance').where({ endpoint: instance.endpoint }).update({ state: 'deregistered' });
  await waitFor('the instance to be gone', () => statesOf(name).every((state) => state !== 'up'));
  return { run, instance };
}

const ways: [string, Partial<Exclude<StepOf, string>>][] = [
  ['by another attempt of its activity', { round: 2 }],
  ['from the queue, after it was done inline', { again: true }],
  ['inline, by a worker that took the task over', { batch: aloneInBatch }],
  ['inline, in a run that can escalate', { batch: aloneInBatch, escalates: true }],
  ['as if it had not begun', {}],
  ['after a wait', { resumed: true }],
];

/** The router looks for seconds for an instance: so all wait together, each for its own. */
test.concurrent.each(ways)('asked for once more %s', async (way, how) => {
  const { run, instance } = await aDoneRun(way.replaceAll(/[^a-z]+/g, '-'));
  const before = instance.execs.length;
  const end = await newWorker().execute(run, { step_id: 'a', ...how });
  expect(end).toEqual({ kind: 'succeeded', output: { n: 1 }, attempt: null });
  expect(instance.execs.length).toBe(before);
  const row = await db('step').where({ run_id: run.run_id }).first();
  expect([row.state, row.error]).toEqual(['succeeded', null]);
});
