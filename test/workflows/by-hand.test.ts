/** What a person may send to workflows by Temporal's own tools: nonsense changes nothing, or ends only what it started. */

import { engineVersion } from '@capstan/core/workflow-payloads';
import type { Payload } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aPlan } from '../../packages/core/test/run/a-plan.ts';
import { connectionOf } from '../../src/clients/temporal/connection.ts';
import { createRunWorkflows } from '../../src/clients/temporal/run-workflows.ts';
import {
  type ScriptedRun,
  type ScriptedRuns,
  startScriptedRuns,
  succeeded,
} from '../support/scripted-runs.ts';
import { waitFor } from '../support/wait.ts';

let runs: ScriptedRuns;
beforeAll(async () => {
  runs = await startScriptedRuns();
});
afterAll(() => runs?.stop());

function payloadOf(encoding: string, text: string): Payload {
  return { metadata: { encoding: Buffer.from(encoding) }, data: Buffer.from(text) };
}

function json(value: unknown): Payload[] {
  return [payloadOf('json/plain', JSON.stringify(value))];
}

const nonsense: readonly (readonly Payload[])[] = [
  [],
  [payloadOf('binary/null', '')],
  [payloadOf('json/plain', '{"version": NaN')],
  [payloadOf('json/protobuf', '{}')],
  [payloadOf('binary/plain', '\u0000')],
  [payloadOf('of nobody', '{}')],
  [{}],
  ...['NaN', 5, [], [null], {}, { x: 1 }, true].map(json),
  json({ version: 1e308, paused: true, budget_version: 0, review_id: 'rev_1', step_id: 'no-such', item: 0 }),
  json({ version: 'NaN', paused: 'yes', budget_version: null, review_id: 5, step_id: 'a', item: '0' }),
  json({
    version: 9_007_199_254_740_991,
    paused: true,
    budget_version: 0,
    review_id: 'rev_1',
    step_id: 'a',
    item: 7,
  }),
  [...json({}), ...json({})],
];

function createGate() {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open: () => open(), opened };
}

/** As `temporal workflow signal` does, with or without `--input`. */
async function signalByHand({ handle }: ScriptedRun, signalName: string, payloads: readonly Payload[]) {
  await connectionOf(runs.client).workflowService.signalWorkflowExecution({
    namespace: runs.client.options.namespace,
    workflowExecution: { workflowId: handle.workflowId },
    signalName,
    ...(payloads.length === 0 ? {} : { input: { payloads: [...payloads] } }),
  });
}

async function failedTasks({ handle }: ScriptedRun): Promise<unknown[]> {
  const { events } = await handle.fetchHistory();
  return (events ?? []).flatMap((event) => event.workflowTaskFailedEventAttributes?.failure?.message ?? []);
}

describe('a signal by hand', () => {
  test.each(['control', 'reviewed', 'woken', 'no-such'])(
    'named %s, with nonsense, neither harms a run nor hides the signals that follow',
    async (name) => {
      const asked = { awaiting: 'review', until: null, ref: { review_id: 'rev_1' } } as const;
      const run = await runs.start(aPlan(['a', 'b a']), {
        execute: ({ step_id, resumed }) =>
          step_id === 'a' && resumed === undefined ? { waiting: asked } : succeeded,
      });
      await waitFor('the question', () => run.recorded.calls.length === 1);
      for (const payloads of nonsense) await signalByHand(run, name, payloads);
      const control = (version: number, paused: boolean) => ({ version, paused, budget_version: 0 });
      await run.handle.signal('control', control(1, true));
      await run.handle.signal('control', control(2, false));
      await run.handle.signal('reviewed', { review_id: 'rev_1', version: 2 });
      expect(await run.ended()).toBe('succeeded');
      expect(await failedTasks(run)).toEqual([]);
    },
  );

  test('of a review with a version that is too high does not hide its end', async () => {
    const asked = { awaiting: 'review', until: null, ref: { review_id: 'rev_1' } } as const;
    const run = await runs.start(aPlan(['a']), {
      execute: (_, times) => (times < 3 ? { waiting: asked } : succeeded),
    });
    await waitFor('the question', () => run.recorded.calls.length === 1);
    await run.handle.signal('reviewed', { review_id: 'rev_1', version: 1_000_000 });
    await waitFor('the question again', () => run.recorded.calls.length === 2);
    await run.handle.signal('reviewed', { review_id: 'rev_1', version: 2 });
    expect(await run.ended()).toBe('succeeded');
  });
});

describe('a workflow that is started by hand', () => {
  const types = ['runPipeline', 'escalate', 'scheduledRun'];
  const inputs = [undefined, null, 'x', 5, [], {}, { x: 1 }, { engine_version: 1e308, run_id: 'run_1' }];

  test.each(types)('of type %s, with an input that is none, ends at once with the reason', async (type) => {
    for (const [at, input] of inputs.entries()) {
      const handle = await runs.client.workflow.start(type, {
        taskQueue: runs.taskQueue,
        workflowId: `by-hand/${type}/${runs.taskQueue}/${at}`,
        args: input === undefined ? [] : [input],
      });
      await expect(handle.result()).rejects.toMatchObject({
        cause: {
          type: 'request_invalid',
          message: expect.stringMatching(/^Capstan has not started this workflow, and cannot: input[. ]/),
        },
      });
      const { events } = await handle.fetchHistory();
      expect(events?.filter((event) => event.workflowTaskFailedEventAttributes != null)).toEqual([]);
    }
  });

  test('with a known run whose plan is broken, ends at once', async () => {
    const [step] = aPlan(['a']).steps;
    const broken = { steps: [{ ...step, dependencies: [7] }], max_in_flight: 1 };
    const run = await runs.start(broken as ReturnType<typeof aPlan>, { execute: () => succeeded });
    await expect(run.handle.result()).rejects.toMatchObject({
      cause: {
        message: expect.stringContaining('input.plan.steps[0].dependencies[0] is 7, not an index below 1'),
      },
    });
  });
});

test('a workflow whose task keeps failing is found, with the reason, and no other is', async () => {
  const workflows = createRunWorkflows(runs.client, runs.taskQueue);
  const asked = { awaiting: 'review', until: null, ref: { review_id: 'rev_1' } } as const;
  const refOf = ({ handle }: ScriptedRun) => {
    const [pipeline = '', run_id = ''] = handle.workflowId.split('/');
    return { pipeline, run_id };
  };
  const [newer, waiting] = await Promise.all([
    runs.start(aPlan(['a']), { execute: () => succeeded }, { engine_version: engineVersion + 1 }),
    runs.start(aPlan(['a']), { execute: () => ({ waiting: asked }) }),
  ]);
  const fault = await waitFor('the fault', () => workflows.findTaskFault(refOf(newer)));
  expect(fault.message).toBe(
    `engine version ${engineVersion + 1} waits for a newer worker: this one knows ${engineVersion}`,
  );
  expect(fault.since).toBeInstanceOf(Date);
  expect(await workflows.findTaskFault(refOf(waiting))).toBeNull();
  expect(await workflows.findTaskFault({ pipeline: 'no', run_id: 'run_0' })).toBeNull();
  await Promise.all([newer.handle.terminate(), waiting.handle.terminate()]);
});

describe('an activity that is completed by hand', () => {
  test.each([null, 5, 'x', [], {}, { x: 1 }, { waiting: 1 }])(
    'with %j is asked for again, because its row has the result',
    async (result) => {
      const [called, heard] = [createGate(), createGate()];
      const run = await runs.start(aPlan(['a', 'b a']), {
        execute: async ({ step_id, again }) => {
          if (step_id === 'a' && again !== true) {
            called.open();
            await heard.opened; // this result does not arrive
          }
          return succeeded;
        },
      });
      await called.opened;
      const { workflowId } = run.handle;
      await runs.client.activity.complete({ workflowId, activityId: 'a/0/0' }, result);
      expect(await run.ended()).toBe('succeeded');
      expect(run.recorded.calls.map(({ step_id, again }) => [step_id, again])).toEqual([
        ['a', undefined],
        ['a', true],
        ['b', undefined],
      ]);
      expect(await failedTasks(run)).toEqual([]);
      heard.open();
    },
  );
});
