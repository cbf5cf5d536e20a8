/** Messages to a run between two of its histories: the next one receives them before it has begun. */

import type { WorkflowSnapshot } from '@capstan/core/workflow-payloads';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { aPlan } from '../../packages/core/test/run/a-plan.ts';
import { type Script, type ScriptedRuns, startScriptedRuns, succeeded } from '../support/scripted-runs.ts';
import { waitFor } from '../support/wait.ts';

let runs: ScriptedRuns;
beforeAll(async () => {
  runs = await startScriptedRuns();
});
afterAll(() => runs?.stop());

const control = { version: 1, paused: false, budget_version: 0 };

/** Of a run of one step that had begun, or not. */
function carried(steps: 'p' | 'w', isPaused: boolean): WorkflowSnapshot {
  return {
    machine: {
      steps,
      fans: [],
      woken: [],
      isPaused,
      waits:
        steps === 'p'
          ? []
          : [{ step: 0, item: 0, wait: { awaiting: 'run', until: null, ref: { run_id: 'run_sub' } } }],
    },
    deadline_ms: null,
    control: { ...control, paused: isPaused },
    early_wakes: [],
    seen_versions: {},
    has_waited: steps === 'w',
  };
}

const plan = aPlan(['a']);

test('a wait that ends between two histories is over in the next one', async () => {
  const woken = { name: 'woken', value: { step_id: 'a', item: 0 } };
  const run = await runs.start(
    plan,
    { execute: () => succeeded },
    { snapshot: carried('w', false) },
    { signal: woken },
  );
  expect(await run.ended()).toBe('succeeded');
  expect(run.recorded.calls).toMatchObject([{ step_id: 'a', resumed: true }]);
});

test('a run that is resumed between two histories continues in the next one', async () => {
  const resumed = { name: 'control', value: { ...control, version: 2 } };
  const run = await runs.start(
    plan,
    { execute: () => succeeded },
    { snapshot: carried('p', true) },
    { signal: resumed },
  );
  expect(await run.ended()).toBe('succeeded');
});

test('a run that is paused between two histories begins nothing in the next one', async () => {
  const paused = { name: 'control', value: { ...control, version: 2, paused: true } };
  const run = await runs.start(
    plan,
    { execute: () => succeeded },
    { snapshot: carried('p', false) },
    { signal: paused },
  );
  await run.handle.signal('control', { ...control, version: 3, paused: true }); // changes nothing
  await run.handle.cancel();
  expect(await run.ended()).toBe('cancelled');
  expect(run.recorded.calls).toEqual([]);
});

test('a cancel that comes while a run is about to move on cancels it', async () => {
  let hear: () => Promise<unknown> = async () => undefined;
  const script: Script = {
    execute: () => succeeded,
    decide: () => ({ type: 'go', items: 1 }),
    record: async () => void (await hear()),
  };
  const fans = aPlan(['a', 'b a']).steps.map((step) => ({ ...step, decides: true as const, each: {} }));
  const run = await runs.start(
    { ...plan, steps: fans },
    script,
    { history_events: 2 },
    { workflowTaskTimeout: '1s' },
  );
  hear = async () => {
    hear = async () => undefined;
    await run.handle.cancel();
    await waitFor('the workflow to hear of it', async () => {
      const { events = [] } = await run.handle.fetchHistory();
      const heard =
        events?.findIndex((event) => event.workflowExecutionCancelRequestedEventAttributes != null) ?? -1;
      return (
        heard > 0 && events?.slice(heard).some((event) => event.workflowTaskCompletedEventAttributes != null)
      );
    });
  };
  expect(await run.ended()).toBe('cancelled');
});
