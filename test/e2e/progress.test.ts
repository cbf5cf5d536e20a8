/** The reports of long calls, progress and lines of a log, from the instance into the log of its run. */

import type { RunningInstance } from '@capstan/capability';
import { defineCapability, type ExecContext } from '@capstan/capability';
import type { EventPage } from '@capstan/core/contracts/event';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { serve } from '../../packages/capability/test/support/capabilities.ts';
import { isLong } from '../support/long.ts';
import { type SharedCapstan, shareCapstan } from '../support/shared-capstan.ts';
import { waitFor } from '../support/wait.ts';

let capstan: SharedCapstan;
let instance: RunningInstance;
/** What the call does between its beginning and its end. */
let work: (context: ExecContext) => Promise<void>;

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
    max_concurrency: 2,
    exec: async (_, context) => {
      await work(context);
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

test('the progress of a call is in the log while it works, at most twice a second', async () => {
  let finish = (): void => undefined;
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  work = async ({ progress }) => {
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

test('a call that reports none has none', async () => {
  work = async () => undefined;
  const runId = await submit();
  expect(await capstan.ended(runId)).toMatchObject({ state: 'succeeded' });
  expect((await capstan.logOf(runId)).filter(({ type }) => type === 'step.progress')).toEqual([]);
});

test('a failure after progress is a failure like any other', async () => {
  work = async ({ progress }) => {
    progress(0.5);
    throw new Error('the disk is full');
  };
  const runId = await submit();
  await waitFor('the step to be refused', async () => {
    const refused = (await eventsOf(runId)).find(({ type }) => type === 'step.retrying');
    return JSON.stringify(refused?.data ?? '').includes('the disk is full');
  });
});

async function linesOf(runId: string): Promise<EventPage['items']> {
  return (await capstan.logOf(runId)).filter(({ type }) => type === 'step.log');
}

test('lines that a call logs are in the log while it works, with level, attempt and instance', async () => {
  let finish = (): void => undefined;
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  work = async ({ log }) => {
    log.info('two clips');
    await finished;
    log.error('half of it is silent');
  };
  const runId = await submit();
  const event = { step_id: 'a', attempt: 1, run_id: runId };
  const { endpoint } = instance;
  const seen = await waitFor('the first line', async () => {
    const events = (await eventsOf(runId)).filter(({ type }) => type === 'step.log');
    return events.length > 0 ? events : undefined;
  });
  expect(seen).toMatchObject([{ ...event, data: { level: 'info', message: 'two clips', endpoint } }]);
  finish();
  expect(await capstan.ended(runId)).toMatchObject({ state: 'succeeded' });
  const lines = await waitFor('the last line', async () => {
    const events = await linesOf(runId);
    return events.length > 1 ? events : undefined;
  });
  expect(lines.map(({ data }) => (data as { level: string }).level)).toEqual(['info', 'error']);
});

test('a flood of lines is bounded and counted, and the run next to it continues in order', async () => {
  const flooded = isLong ? 100_000 : 10_000;
  let flood = (): void => undefined;
  const other = new Promise<void>((resolve) => {
    flood = resolve;
  });
  work = async ({ log, progress }) => {
    for (let at = 0; at < flooded; at += 1) log.info(`line ${at}`);
    log.error('the last word');
    progress(1);
    await other;
  };
  const loud = await submit();
  await waitFor('the flood', async () => (await eventsOf(loud)).some(({ type }) => type === 'step.log'));
  work = async ({ log }) => log.info('quiet');
  const quiet = await submit();
  expect(await capstan.ended(quiet)).toMatchObject({ state: 'succeeded' });
  await waitFor('its line', async () => (await linesOf(quiet)).length === 1);
  const told = (await capstan.logOf(quiet)).filter(({ type }) => type !== 'step.log').map(({ type }) => type);
  expect(told.at(-1)).toBe('run.succeeded');
  flood();
  expect(await capstan.ended(loud)).toMatchObject({ state: 'succeeded' });
  const lines = await waitFor('the closing line', async () => {
    const events = (await linesOf(loud)).map(({ data }) => (data as { message: string }).message);
    return events.at(-1)?.includes('dropped') ? events : undefined;
  });
  expect(lines.length).toBeLessThanOrEqual(501);
  expect(lines.at(-2)).toBe('the last word');
  expect(lines.at(-1)).toBe(`${flooded + 1 - (lines.length - 1)} lines were dropped`);
});

test('the text of a model is in the log while it is written, and whole in the result', async () => {
  let isSeen = false;
  work = async ({ delta }) => {
    delta('Once upon');
    await waitFor('the reader', () => isSeen);
    delta(' a time');
  };
  const runId = await submit();
  const texts = async () =>
    (await eventsOf(runId)).flatMap(({ type, data }) => (type === 'step.log' ? [data] : []));
  const [line] = await waitFor('the first line', async () => {
    const seen = await texts();
    return seen.length > 0 ? seen : undefined;
  });
  expect(line).toMatchObject({ level: 'debug', message: 'Once upon', delta: true });
  expect(await capstan.request('GET', `/v1/runs/${runId}`)).toMatchObject({ body: { state: 'running' } });
  isSeen = true;
  expect(await capstan.ended(runId)).toMatchObject({ state: 'succeeded' });
  const lines = await waitFor('the last line', async () => {
    const seen = (await texts()) as { message: string }[];
    return seen.length > 1 ? seen : undefined;
  });
  expect(lines.map(({ message }) => message).join('')).toBe('Once upon a time');
});
