import type { MockActivityEnvironment } from '@temporalio/testing';
import { expect, it } from 'vitest';
import { createInlineActivity } from '../../src/activities/inline-activity.ts';
import type { InlineBatchEnd, InlineEnd } from '../../src/activities/step-messages.ts';
import type { InlineResult } from '../../src/services/steps/execute-inline.ts';
import { aMockActivity } from '../support/mock-activity.ts';

const request = { run_id: 'run_1', units: [] };

async function run(
  environment: MockActivityEnvironment,
  activity: ReturnType<typeof createInlineActivity>,
): Promise<readonly InlineEnd[]> {
  const { ends } = (await environment.run(activity, request)) as InlineBatchEnd;
  return ends;
}
async function endsOf(results: readonly InlineResult[]) {
  const activity = createInlineActivity(async () => ({ results, closed: null }));
  return run(aMockActivity({}), activity);
}
function done(output: string): InlineResult {
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

it('is told why nobody wants it', async () => {
  const environment = aMockActivity({});
  const activity = createInlineActivity(async (_, signal) => {
    environment.cancel();
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    return { results: [signal.reason === 'cancelled' ? 'again' : 'left'], closed: null };
  });
  expect(await run(environment, activity)).toEqual(['again']);
});
