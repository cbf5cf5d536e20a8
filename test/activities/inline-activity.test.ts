import type { MockActivityEnvironment } from '@temporalio/testing';
import { expect, it } from 'vitest';
import { createInlineActivity } from '../../src/activities/inline-activity.ts';
import type { InlineBatchEnd, InlineEnd } from '../../src/activities/step-messages.ts';
import {
  createExecuteInline,
  type InlineResult,
  type InlineUnit,
} from '../../src/services/steps/execute-inline.ts';
import type { StepEnd } from '../../src/services/steps/execute-step.ts';
import { createGoingCalls } from '../../src/services/steps/going-calls.ts';
import { aMockActivity } from '../support/mock-activity.ts';

async function run(
  environment: MockActivityEnvironment,
  activity: ReturnType<typeof createInlineActivity>,
  units: readonly InlineUnit[] = [],
): Promise<readonly InlineEnd[]> {
  const { ends } = (await environment.run(activity, { run_id: 'run_1', units })) as InlineBatchEnd;
  return ends;
}
async function endsOf(results: readonly InlineResult[]) {
  const activity = createInlineActivity(async () => ({ results, closed: null }));
  return run(aMockActivity({}), activity);
}
function done(output: string): Extract<StepEnd, { kind: 'succeeded' }> {
  const attempt = { endpoint: 'http://one', cost_usd: 0.5, duration_ms: 7 } as never;
  return { kind: 'succeeded', output, attempt };
}

it('tells what became of each unit', async () => {
  expect(await endsOf([done('A'), 'left', 'again'])).toEqual([
    { endpoint: 'http://one', cost_usd: 0.5, duration_ms: 7, output: 'A' },
    'left',
    'again',
  ]);
});

it('outputs travel into the history as long as all together are small', async () => {
  const ends = await endsOf(Array.from({ length: 20 }, () => done('x'.repeat(4_000))));
  const shown = ends.filter((end) => typeof end !== 'string' && 'output' in end);
  expect(shown).toHaveLength(16);
});

it('a cancellation cuts nothing: no run cancels a batch, only a machine that stood still', async () => {
  const environment = aMockActivity({});
  const executeInline = createExecuteInline({
    going: createGoingCalls(),
    closeRun: () => Promise.reject(new Error('nothing is closed')),
    executeStep: async (_, { signal }) => {
      environment.cancel();
      await new Promise(setImmediate);
      return signal.aborted ? { kind: 'cancelled' } : done('A');
    },
  });
  const units = [{ step_id: 'a', total_timeout_ms: 60_000 }];
  expect(await run(environment, createInlineActivity(executeInline), units)).toMatchObject([{ output: 'A' }]);
});
