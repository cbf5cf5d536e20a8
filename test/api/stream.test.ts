/** The stream of a project: its states, every event of the runs that are looked at, and nothing of others. */

import type { RunFrame } from '@capstan/core/contracts/event';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { insertReview } from '../../src/db/review/review.ts';
import { finishRun } from '../../src/db/run/run.ts';
import { keepWaiting } from '../../src/db/step/step-progress.ts';
import { newId } from '../../src/parts/ids.ts';
import { type CallOptions, readJson, startTestApi, type TestApi } from '../support/api.ts';
import {
  aClaim,
  anEnd,
  anInstance,
  aRun,
  claimAttempt,
  type StoredRun,
  settleAttempt,
} from '../support/factories.ts';
import { openStream, type ProjectStream } from '../support/project-stream.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
const opened: ProjectStream[] = [];
beforeAll(async () => {
  api = await startTestApi();
});
afterEach(async () => {
  for (const stream of opened.splice(0)) await stream.close();
});
afterAll(() => api.close());

async function open(query?: string, headers?: Record<string, string>): Promise<ProjectStream> {
  const stream = await openStream(api, query, headers);
  opened.push(stream);
  return stream;
}

async function work(run: { run_id: string; project_id: string }, step_id = 'a') {
  const instance = await anInstance(api.db, { cost_type: 'per_call', rate_usd: 0.25, max_concurrency: 5 });
  const claim = aClaim(run, instance, {
    step_id,
    key: `${run.run_id}.${step_id}.0.0`,
    step: { run_id: run.run_id, step_id, item: 0, revision: 0 },
    reserved_nano: 250_000_000n,
  });
  await claimAttempt(api.db, claim);
  return { instance, settle: () => settleAttempt(api.db, anEnd(claim, { settled_nano: 250_000_000n })) };
}

const firstStep = { step_id: 'a', item: 0, revision: 0 } as const;
const untilRaised = { awaiting: 'budget', until: null, for_ms: null, begins: true } as const;

/** A run of which the first step of another waits. */
async function startedBy({ run_id, project_id }: StoredRun): Promise<StoredRun> {
  const { step_id, item, revision } = firstStep;
  const origin = {
    parent_run_id: run_id,
    parent_step_id: step_id,
    parent_item: item,
    parent_revision: revision,
  };
  const started = await aRun(api.db, { project_id, ...origin });
  const wait = { awaiting: 'run', until: null, for_ms: null, begins: true } as const;
  await keepWaiting(api.db, { run_id, ...firstStep }, { ...wait, sub_run_id: started.run_id });
  return started;
}

function ask(path: string, options?: CallOptions): Promise<[number, { code: string }]> {
  return readJson(api.call(path, options));
}

describe('a run', () => {
  test('is streamed in its present state, from its begin to its end', async () => {
    const stream = await open('topics=runs');
    const run = await aRun(api.db, { project_id: api.projectId });
    const isIt = ({ run_id }: RunFrame) => run_id === run.run_id;
    expect(await stream.next('run', isIt)).toEqual({
      run_id: run.run_id,
      pipeline: 'trailer',
      state: 'queued',
      awaiting: [],
      cost_usd: 0,
      reserved_usd: 0,
      steps: { pending: 3 },
    });
    const { settle } = await work(run);
    const running = await stream.next('run', (frame) => isIt(frame) && frame.reserved_usd > 0);
    expect(running).toMatchObject({ reserved_usd: 0.25, steps: { running: 1, pending: 2 } });
    await settle();
    const paid = await stream.next('run', (frame) => isIt(frame) && frame.cost_usd > 0);
    expect(paid).toMatchObject({ cost_usd: 0.25, reserved_usd: 0, steps: { succeeded: 1, pending: 2 } });
    const end = { run_id: run.run_id, state: 'succeeded', output: null, error: null, step_ids: [] } as const;
    await finishRun(api.db, end);
    expect(await stream.next('run', (frame) => isIt(frame) && frame.state === 'succeeded')).toBeDefined();
  });

  // How often there is a round: stream-feed.test.ts.
  test('is streamed at most once in a round, whatever happens to it', async () => {
    const stream = await open('topics=runs');
    const run = await aRun(api.db, { project_id: api.projectId });
    for (const step of ['a', 'b', 'c']) await (await work(run, step)).settle();
    await stream.next('run', ({ run_id, steps }) => run_id === run.run_id && steps.succeeded === 3);
    const rounds = stream.frames
      .filter(({ data }) => (data as RunFrame).run_id === run.run_id)
      .map(({ id }) => id);
    expect(new Set(rounds).size).toBe(rounds.length);
  });

  test('is streamed when only its child runs change, at any depth', async () => {
    const outer = await aRun(api.db, { project_id: api.projectId });
    const inner = await startedBy(await startedBy(outer));
    const stream = await open('topics=runs');
    const isIt = ({ run_id }: RunFrame) => run_id === outer.run_id;
    await keepWaiting(api.db, { run_id: inner.run_id, ...firstStep }, untilRaised);
    const waits = await stream.next('run', (frame) => isIt(frame) && frame.awaiting.includes('budget'));
    expect(waits).toMatchObject({ awaiting: ['budget', 'run'], cost_usd: 0 });
    await (await work(inner, 'b')).settle();
    await stream.next('run', (frame) => isIt(frame) && frame.cost_usd === 0.25);
    const end = { run_id: inner.run_id, state: 'failed', output: null, error: null, step_ids: [] } as const;
    await finishRun(api.db, end);
    await stream.next('run', (frame) => isIt(frame) && !frame.awaiting.includes('budget'));
  });

  test('that is selected is streamed event by event, numbered as in its log', async () => {
    const run = await aRun(api.db, { project_id: api.projectId });
    const other = await aRun(api.db, { project_id: api.projectId });
    const stream = await open(`topics=runs&run_id=${run.run_id}`);
    await (await work(other)).settle();
    await (await work(run)).settle();
    await stream.next('step', ({ type }) => type === 'step.succeeded');
    const [, log] = await readJson<{ items: object[] }>(api.call(`/v1/runs/${run.run_id}/events`));
    const told = stream.frames.filter(({ kind }) => kind === 'step').map(({ data }) => data);
    expect(log.items.slice(-told.length)).toEqual(told);
    expect(told.length).toBeGreaterThan(1);
    expect((told as { run_id: string }[]).every(({ run_id }) => run_id === run.run_id)).toBe(true);
  });
});

test('a run that fails is streamed with its error', async () => {
  const stream = await open('topics=runs');
  const { run_id } = await aRun(api.db, { project_id: api.projectId });
  const error = { code: 'step_failed', message: 'step a: it broke' };
  await finishRun(api.db, { run_id, state: 'failed', output: null, error, step_ids: [] });
  const failed = await stream.next('run', (seen) => seen.run_id === run_id && seen.state === 'failed');
  expect(failed.error).toEqual(error);
});

test('an instance is streamed when its calls or its row change', async () => {
  const stream = await open('topics=instances');
  const run = await aRun(api.db, { project_id: api.projectId });
  const { instance, settle } = await work(run);
  const isIt = ({ endpoint }: { endpoint: string }) => endpoint === instance.endpoint;
  expect(await stream.next('instance', (seen) => isIt(seen) && seen.in_flight === 1)).toBeDefined();
  await settle();
  expect(await stream.next('instance', (seen) => isIt(seen) && seen.in_flight === 0)).toBeDefined();
  await api.db('instance').where({ endpoint: instance.endpoint }).update({ state: 'down', reason: 'gone' });
  const down = await stream.next('instance', (seen) => isIt(seen) && seen.state === 'down');
  expect(down).toMatchObject({ name: 'concat', reason: 'gone' });
});

async function aReview(): Promise<string> {
  const review_id = newId('review');
  await insertReview(api.db, {
    review_id,
    project_id: api.projectId,
    kind: 'ops',
    reason: 'look at this',
    payload: {},
    due_in_ms: 60_000,
  } as Parameters<typeof insertReview>[1]);
  return review_id;
}

test('a review is streamed when it is opened, claimed and withdrawn', async () => {
  const stream = await open('topics=reviews');
  const review_id = await aReview();
  const isIt = (seen: { review_id: string }) => seen.review_id === review_id;
  expect(await stream.next('review', isIt)).toMatchObject({ state: 'open', kind: 'ops', version: 1 });
  await api.call(`/v1/reviews/${review_id}/claim`, { method: 'POST' });
  const claimed = await stream.next('review', (seen) => isIt(seen) && seen.state === 'claimed');
  expect(claimed.assignee).toMatch(/^key_/);
  await api
    .db('review')
    .where({ review_id })
    .update({ state: 'cancelled', decided_at: new Date(), version: 3, claim_expires_at: null });
  expect(await stream.next('review', (seen) => isIt(seen) && seen.state === 'cancelled')).toBeDefined();
});

test('a budget is streamed when its limit changes, that of all projects to operators alone', async () => {
  const [all, own] = [
    await open('topics=budgets'),
    await open('topics=budgets', {
      authorization: `Bearer ${await api.createKey({ scopes: ['cost:read'] })}`,
    }),
  ];
  await api.call('/v1/budgets', { method: 'PUT', body: { scope: 'global', daily_limit_usd: 9 } });
  await api.call('/v1/budgets', { method: 'PUT', body: { scope: 'project', daily_limit_usd: 7 } });
  await all.next('budget', ({ scope, daily_limit_usd }) => scope === 'global' && daily_limit_usd === 9);
  await own.next('budget', ({ daily_limit_usd }) => daily_limit_usd === 7);
  expect(own.frames.map(({ data }) => (data as { scope: string }).scope)).not.toContain('global');
});

describe('a client that reconnects', () => {
  test('receives the missed events, also with other topics and other runs', async () => {
    const first = await open('topics=runs');
    const run = await aRun(api.db, { project_id: api.projectId });
    await first.next('run', ({ run_id }) => run_id === run.run_id);
    const id = await first.close();
    const { settle } = await work(run);
    await settle();
    const review = await aReview();
    const ended = await aRun(api.db, { project_id: api.projectId });
    await finishRun(api.db, {
      run_id: ended.run_id,
      state: 'cancelled',
      output: null,
      error: null,
      step_ids: [],
    });
    const second = await open(`topics=runs,reviews&run_id=${run.run_id}&after=${id}`);
    await second.next('run', ({ run_id, cost_usd }) => run_id === run.run_id && cost_usd > 0);
    await second.next('run', ({ run_id, state }) => run_id === ended.run_id && state === 'cancelled');
    await second.next('review', ({ review_id }) => review_id === review);
    await second.next('step', ({ type }) => type === 'step.succeeded');
    const [, log] = await readJson<{ items: object[] }>(api.call(`/v1/runs/${run.run_id}/events`));
    const told = second.frames.filter(({ kind }) => kind === 'step').map(({ data }) => data);
    expect(log.items.slice(-told.length)).toEqual(told);
    expect(second.frames.some(({ kind }) => kind === 'reset')).toBe(false);
  });

  test('receives no event twice, however soon it comes back', async () => {
    const run = await aRun(api.db, { project_id: api.projectId });
    const instance = await work(run, 'a');
    const seqsOf = ({ frames }: ProjectStream) =>
      frames.filter(({ kind }) => kind === 'step').map(({ data }) => (data as { seq: number }).seq);
    const first = await open(`topics=runs&run_id=${run.run_id}`);
    await instance.settle();
    await first.next('step', ({ type }) => type === 'step.succeeded');
    const id = await first.close();
    await (await work(run, 'b')).settle();
    const second = await open(`topics=runs&run_id=${run.run_id}&after=${id}`);
    await second.next('step', ({ type, step_id }) => type === 'step.succeeded' && step_id === 'b');
    const told = [...seqsOf(first), ...seqsOf(second)];
    expect(told).toEqual(told.map((_, index) => (told[0] ?? 0) + index));
  });

  test.each([
    ['too late', () => `1.${Date.now() - 3_700_000}.1`],
    ['from another database', () => `99999999999.${Date.now()}.99999999999`],
    ['with no position', () => 'x'],
  ])('%s receives the order to read everything again', async (_, after) => {
    const stream = await open('topics=runs', { 'last-event-id': after() });
    await waitFor('a reset', () => stream.frames.some(({ kind }) => kind === 'reset'));
  });
});

describe('of another project', () => {
  test('no event is streamed', async () => {
    const { projectId, apiKey } = await api.createProject('other');
    const headers = { authorization: `Bearer ${apiKey}` };
    const theirs = await open('topics=runs,reviews,budgets', headers);
    const run = await aRun(api.db, { project_id: api.projectId });
    await (await work(run)).settle();
    await aReview();
    const own = await aRun(api.db, { project_id: projectId });
    await theirs.next('run', ({ run_id }) => run_id === own.run_id);
    expect(JSON.stringify(theirs.frames)).not.toContain(run.run_id);
    expect(theirs.frames.filter(({ kind }) => kind === 'review' || kind === 'step')).toEqual([]);
    expect(await ask(`/v1/stream?run_id=${run.run_id}`, { headers })).toMatchObject([
      404,
      { code: 'not_found' },
    ]);
    const selected = await open(`topics=runs&project_id=${projectId}`);
    const another = await aRun(api.db, { project_id: projectId });
    await selected.next('run', ({ run_id }) => run_id === another.run_id);
  });
});

describe('a key', () => {
  test('receives events of its rights alone', async () => {
    const key = async (scope: 'cost:read' | 'run:read' | 'skill:read') => ({
      authorization: `Bearer ${await api.createKey({ scopes: [scope] })}`,
    });
    const stream = await open('', await key('run:read'));
    await api.call('/v1/budgets', { method: 'PUT', body: { scope: 'project', daily_limit_usd: 3 } });
    const review = await aReview();
    await stream.next('review', ({ review_id }) => review_id === review);
    expect(stream.frames.some(({ kind }) => kind === 'budget' || kind === 'instance')).toBe(false);
    expect((await ask('/v1/stream', { headers: await key('skill:read') }))[0]).toBe(403);
    expect((await ask('/v1/stream?topics=nonsense'))[0]).toBe(422);
  });

  test('that is revoked receives no more events', async () => {
    const body = { name: 'short', scopes: ['run:read'], projects: [api.projectId] };
    const [, made] = await readJson<{ key: string; key_id: string }>(api.call('/v1/keys', { body }));
    const stream = await open('', { authorization: `Bearer ${made.key}` });
    await api.call(`/v1/keys/${made.key_id}`, { method: 'DELETE' });
    await waitFor('the stream to end', stream.isOver);
  });
});
