/** A caller whose wait had no result learns the present state, not the earlier one. */

import type { StepEnd } from '@capstan/core/workflow-payloads';
import { expect, test } from 'vitest';
import { aRun } from '../../support/factories.ts';
import { answer } from '../../support/fleet.ts';
import { useSteps } from '../../support/steps.ts';
import { waitFor } from '../../support/wait.ts';

const { db, newWorker, register, statesOf } = useSteps();

test('steps that wait while an instance appears and leaves keep their place in line, and their log gives the reason', async () => {
  const only = await register({ name: 'scarce', max_concurrency: 1 });
  const turn = (state: string): Promise<number> =>
    db('instance').where({ endpoint: only.endpoint }).update({ state });
  await turn('deregistered');
  await waitFor('it to be gone', () => statesOf('scarce').every((state) => state !== 'up'));
  let free = (): void => undefined;
  only.handle = (_, response) => {
    free = () => answer(response, 200, {});
  };
  const steps = [{ id: 'a', capability: 'scarce', input: {} }];
  const runs = await Promise.all([1, 2, 3, 4].map(() => aRun(db, { definition: { steps } })));
  const ends = runs.map((run) => newWorker().execute(run, 'a'));
  const over: StepEnd[] = [];
  for (const end of ends) void end.then((how) => over.push(how));
  await turn('up');
  await waitFor('all but one to wait', () => over.length === 3 && only.execs.length > 0);
  free();
  expect(over.map((end) => end.kind === 'waiting' && end.awaiting)).toEqual(['slot', 'slot', 'slot']);
  const reasons = await db('event').where({ type: 'step.waiting' }).select('data');
  expect(reasons.map(({ data }) => data.reason)).toEqual(
    reasons.map(() =>
      expect.stringMatching(/^the only possible instance of scarce is full; .* is waited for/),
    ),
  );
  await Promise.all(ends);
});
