/** Progress of long calls, from the instance into the log of its run. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineCapability } from '../../src/capability/index.ts';
import type { RunningInstance } from '../../src/capability/lifecycle/start-instance.ts';
import type { EventPage } from '../../src/contracts/event.ts';
import { serve } from '../capability/support/capabilities.ts';
import { type SharedCapstan, shareCapstan } from '../support/shared-capstan.ts';
import { waitFor } from '../support/wait.ts';

let capstan: SharedCapstan;
let instance: RunningInstance;
/** What the call does between its beginning and its end. */
let work: (progress: (fraction: number, message?: string) => void) => Promise<void>;

beforeAll(async () => {
  capstan = await shareCapstan();
  const capability = defineCapability({
    name: 'encode',
    version: '1.0.0',
    description: 'Encodes nothing.',
    input: { type: 'object' },
    output: { type: 'object' },
    cost_model: { type: 'free', rate_usd: 0 },
    tags: ['local'],
    exec: async (_, { progress }) => {
      await work(progress);
      return { done: true };
    },
  });
  instance = await serve(capability, { ROUTER_URL: capstan.url, ROUTER_TOKEN: capstan.key });
});
afterAll(async () => {
  await instance?.stop();
});

async function submit(): Promise<string> {
  const { run_id } = await capstan.submit([{ id: 'a', capability: 'encode', input: {} }]);
  return run_id;
}

async function eventsOf(runId: string): Promise<EventPage['items']> {
  return (await capstan.request<EventPage>('GET', `/v1/runs/${runId}/events`)).body.items;
}

test('what a call says of its progress is in the log while it works, at most twice a second', async () => {
  let finish = (): void => undefined;
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  work = async (progress) => {
    for (let done = 0; done <= 100; done += 1) progress(done / 100, 'encoding');
    await finished;
  };
  const runId = await submit();
  const seen = await waitFor('two words about progress', async () => {
    const events = (await eventsOf(runId)).filter(({ type }) => type === 'step.progress');
    return events.length >= 2 ? events : undefined;
  });
  expect(seen).toMatchObject([
    { step_id: 'a', data: { progress: 0, message: 'encoding' } },
    { step_id: 'a', data: { progress: 1, message: 'encoding' } },
  ]);
  finish();
  expect(await capstan.ended(runId)).toMatchObject({ state: 'succeeded' });
  const types = (await capstan.logOf(runId)).map(({ type }) => type);
  expect(types.lastIndexOf('step.progress')).toBeLessThan(types.indexOf('step.succeeded'));
});

test('a call that says none has none', async () => {
  work = async () => undefined;
  const runId = await submit();
  expect(await capstan.ended(runId)).toMatchObject({ state: 'succeeded' });
  expect((await capstan.logOf(runId)).filter(({ type }) => type === 'step.progress')).toEqual([]);
});

test('a failure after progress is a failure like any other', async () => {
  work = async (progress) => {
    progress(0.5);
    throw new Error('the disk is full');
  };
  const runId = await submit();
  await waitFor('the step to be refused', async () => {
    const refused = (await eventsOf(runId)).find(({ type }) => type === 'step.retrying');
    return JSON.stringify(refused?.data ?? '').includes('the disk is full');
  });
});
