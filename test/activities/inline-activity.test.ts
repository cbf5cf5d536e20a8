import type { StepEnd } from '@capstan/core/workflow-payloads';
import type { MockActivityEnvironment } from '@temporalio/testing';
import { expect, it } from 'vitest';
import type { InlineBatchEnd } from '../../src/activities/step-activities.ts';
import { asInlineActivity } from '../../src/activities/step-activities.ts';
import type { WorkerCtx } from '../../src/context.ts';
import { createInFlightSteps } from '../../src/parts/calls/in-flight-steps.ts';
import {
  executeInline,
  type InlineBatchResult,
  type InlineRequest,
  type InlineResult,
  type InlineUnit,
} from '../../src/use-cases/steps/inline.ts';
import { aMockActivity } from '../support/mock-activity.ts';

async function run(
  environment: MockActivityEnvironment,
  execute: (request: InlineRequest) => Promise<InlineBatchResult>,
  units: readonly InlineUnit[] = [],
): Promise<InlineBatchEnd['ends']> {
  const request = { run_id: 'run_1', units };
  const activity = () => asInlineActivity(request, () => execute(request));
  const { ends } = (await environment.run(activity)) as InlineBatchEnd;
  return ends;
}
async function endsOf(results: readonly InlineResult[]) {
  const units = results.map((_, at) => ({ step_id: `s${at}`, total_timeout_ms: 1 }));
  return run(aMockActivity({}), async () => ({ results, closed: null }), units);
}
function done(output: string): Extract<StepEnd, { kind: 'succeeded' }> {
  const attempt = { endpoint: 'http://one', cost_usd: 0.5, duration_ms: 7 } as never;
  return { kind: 'succeeded', output, attempt };
}

it('returns the end of each unit by its name', async () => {
  const results: InlineResult[] = [done('A'), 'left', 'again', done('B')];
  const names = [
    { step_id: 'a' },
    { step_id: 'many', item: 2 },
    { step_id: 'constructor' },
    { step_id: '__proto__' },
  ];
  const ends = await run(
    aMockActivity({}),
    async () => ({ results, closed: null }),
    names.map((unit) => ({ ...unit, total_timeout_ms: 1 })),
  );
  const known = { endpoint: 'http://one', cost_usd: 0.5, duration_ms: 7 };
  expect(Object.entries(JSON.parse(JSON.stringify(ends)))).toEqual([
    ['a', { ...known, output: 'A' }],
    ['many [2]', 'left'],
    ['constructor', 'again'],
    ['__proto__', { ...known, output: 'B' }],
  ]);
});

it('outputs travel into the history as long as all together are small', async () => {
  const ends = await endsOf(Array.from({ length: 20 }, () => done('x'.repeat(4_000))));
  const shown = Object.values(ends).filter((end) => typeof end !== 'string' && 'output' in end);
  expect(shown).toHaveLength(16);
});

it('a cancellation cuts nothing: no run cancels a batch, only a machine that stood still', async () => {
  const environment = aMockActivity({});
  const ctx = { inFlightSteps: createInFlightSteps<StepEnd>() } as WorkerCtx;
  const options: Parameters<typeof executeInline>[2] = {
    longestMs: 250,
    close: () => Promise.reject(new Error('nothing is closed')),
    execute: async (_ctx, _request, { signal }) => {
      environment.cancel();
      await new Promise(setImmediate);
      return signal.aborted ? { kind: 'cancelled' } : done('A');
    },
  };
  const units = [{ step_id: 'a', total_timeout_ms: 60_000 }];
  const ends = await run(environment, (request) => executeInline(ctx, request, options), units);
  expect(ends).toMatchObject({ a: { output: 'A' } });
});
