import type { RunEvent } from '@capstan/core/contracts/event';
import type { Run } from '@capstan/core/contracts/run';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { finishRun } from '../../src/db/run/run.ts';
import { insertStepLog } from '../../src/db/step/step-progress.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { anInstance } from '../support/factories.ts';
import { isLong } from '../support/long.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
  await anInstance(api.db, { name: 'x' });
  await api.call('/v1/pipelines', { body: definition });
});
afterAll(() => api.close());

const definition = {
  pipeline: 'stored',
  version: '1',
  steps: [
    { id: 'a', capability: 'x' },
    { id: 'b', capability: 'x', depends_on: ['a'] },
  ],
};

function submit(body: object = { pipeline: 'stored' }, headers: Record<string, string> = {}) {
  return api.call('/v1/runs', { body, headers });
}
async function submitted(body?: object): Promise<Run> {
  return (await (await submit(body)).json()) as Run;
}
function end(run: Run, state: 'succeeded' | 'cancelled' = 'succeeded') {
  return finishRun(api.db, {
    run_id: run.run_id,
    state,
    output: { done: true },
    error: null,
    step_ids: state === 'cancelled' ? ['a', 'b'] : [],
  });
}

/** Frames of a stream as they arrive; comments are left out. */
async function* readFrames(answer: Response): AsyncGenerator<Record<string, string>> {
  let rest = '';
  for await (const chunk of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    rest += chunk;
    const frames = rest.split('\n\n');
    rest = frames.pop() ?? '';
    for (const frame of frames.filter((text) => !text.startsWith(':'))) {
      yield Object.fromEntries(
        frame
          .split('\n')
          .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
      );
    }
  }
}

function stream(run: Run, headers: Record<string, string> = {}, signal?: AbortSignal) {
  return fetch(`${api.url}/v1/runs/${run.run_id}/events`, {
    headers: { authorization: `Bearer ${api.apiKey}`, accept: 'text/event-stream', ...headers },
    ...(signal === undefined ? {} : { signal }),
  });
}

describe('a submission', () => {
  test('of a stored pipeline is accepted with 202 and the address of the run', async () => {
    const answer = await submit({ pipeline: 'stored', job: { n: 1 }, labels: { team: 'a' } });
    const run = (await answer.json()) as Run;
    expect(answer.status).toBe(202);
    expect(answer.headers.get('location')).toBe(`/v1/runs/${run.run_id}`);
    expect(run).toMatchObject({ pipeline: 'stored', version: '1', state: 'queued', labels: { team: 'a' } });
    expect(await (await api.call(`/v1/runs/${run.run_id}`)).json()).toMatchObject({ run_id: run.run_id });
  });

  test('has the labels that its job gives, and those of the request before them', async () => {
    const labels = { episode: 'Episode {{ job.id }}', live: '{{ job.live ?? false }}', team: 'ads' };
    const start = async (job: object, more = {}) =>
      submit({ definition: { ...definition, labels }, job, ...more });
    const [first, second] = [await start({ id: 7 }), await start({ id: 'x' }, { labels: { live: 'yes' } })];
    expect(await first.json()).toMatchObject({
      labels: { episode: 'Episode 7', live: 'false', team: 'ads' },
    });
    expect(await second.json()).toMatchObject({ labels: { episode: 'Episode x', live: 'yes', team: 'ads' } });
    for (const job of [{}, { id: 'i'.repeat(300) }, { id: 1, live: ['a'] }]) {
      expect(await (await start(job)).json()).toMatchObject({ status: 422, code: 'job_invalid' });
    }
  });

  test('repeated with its key answers the same run, many times at once too', async () => {
    const send = () => submit({ pipeline: 'stored', job: { n: 2 } }, { 'idempotency-key': 'k-1' });
    const answers = await Promise.all(Array.from({ length: isLong ? 30 : 8 }, send));
    const runs = await Promise.all(answers.map(async (answer) => ((await answer.json()) as Run).run_id));
    expect(new Set(runs).size).toBe(1);
    const replayed = answers.map(({ headers }) => headers.get('idempotent-replayed'));
    expect(replayed.filter((value) => value === null)).toHaveLength(1);
    const other = await submit({ pipeline: 'stored', job: { n: 3 } }, { 'idempotency-key': 'k-1' });
    expect(await other.json()).toMatchObject({ status: 422, code: 'idempotency_key_reuse' });
  });

  test.each([
    [{ pipeline: 'stored', definition }, '/pipeline'],
    [{ pipeline: 'stored', job: {}, job_id: 'job_1' }, '/job'],
    [{ pipeline: 'stored', job: [] }, '/job'],
    [{ pipeline: 'stored', priority: 'urgent' }, '/priority'],
    [{ definition: { ...definition, steps: [] } }, '/definition/steps'],
  ])('is refused with a pointer: %j', async (body, pointer) => {
    expect(await (await submit(body)).json()).toMatchObject({
      code: 'request_invalid',
      errors: [{ pointer }],
    });
  });

  test.each([
    [{ pipeline: 'stored', version: '9' }, 404],
    [{ pipeline: 'missing' }, 404],
    [{ pipeline: 'stored', job_id: 'job_missing' }, 404],
    [{ definition: { ...definition, steps: [{ id: 'a', capability: 'x', depends_on: ['z'] }] } }, 422],
  ])('that names what does not exist is refused: %j', async (body, status) => {
    expect((await submit(body)).status).toBe(status);
  });

  test('that prefers to wait answers 202 when the run has not ended in time', async () => {
    const answer = await submit({ pipeline: 'stored' }, { prefer: 'wait=1' });
    expect([answer.status, answer.headers.get('preference-applied')]).toEqual([202, 'wait=1']);
  });

  test('that prefers to wait answers 200 with the output when the run ends in time', async () => {
    const waiting = submit(
      { pipeline: 'stored' },
      { prefer: 'respond-async, wait=30', 'idempotency-key': 'waits' },
    );
    await waitFor('the run', async () => (await api.db('idempotency').where({ key: 'waits' })).length === 1);
    const { answer } = await api.db('idempotency').where({ key: 'waits' }).first();
    await end(answer as Run);
    const ended = await waiting;
    expect(ended.status).toBe(200);
    expect(await ended.json()).toMatchObject({ state: 'succeeded', output: { done: true } });
  });
});

describe('runs', () => {
  test('are listed newest first, by label and state, page by page', async () => {
    const labels = { set: 'listed' };
    const made: string[] = [];
    for (let n = 0; n < 5; n++) made.push((await submitted({ pipeline: 'stored', labels })).run_id);
    const seen: string[] = [];
    let cursor = '';
    do {
      const path = `/v1/runs?limit=2&state=queued&label=set%3Dlisted${cursor}`;
      const page = (await (await api.call(path)).json()) as { items: Run[]; next_cursor: string | null };
      seen.push(...page.items.map(({ run_id }) => run_id));
      cursor = page.next_cursor === null ? '' : `&cursor=${page.next_cursor}`;
    } while (cursor !== '');
    expect(seen).toEqual(made.toReversed());
  });

  test('show their steps', async () => {
    const run = await submitted();
    const step = await (await api.call(`/v1/runs/${run.run_id}/steps/b`)).json();
    expect(step).toMatchObject({ id: 'b', run_id: run.run_id, depends_on: ['a'], attempts: [] });
    expect((await api.call(`/v1/runs/${run.run_id}/steps/z`)).status).toBe(404);
  });

  test('can be cancelled, with a reason or without a body, and not when they have ended', async () => {
    const run = await submitted();
    const cancel = (body?: object) =>
      api.call(`/v1/runs/${run.run_id}/cancel`, { method: 'POST', ...(body === undefined ? {} : { body }) });
    const by = { id: expect.stringMatching(/^key_/), name: expect.any(String) };
    expect(await (await cancel({ reason: 'enough' })).json()).toMatchObject({
      state: 'cancelling',
      started_by: by,
      cancel: { by, reason: 'enough', mode: 'graceful', requested_at: expect.any(String) },
    });
    expect((await cancel()).status).toBe(202);
    const other = await submitted();
    await end(other);
    const late = await api.call(`/v1/runs/${other.run_id}/cancel`, { method: 'POST' });
    expect(await late.json()).toMatchObject({ status: 409, code: 'state_conflict' });
  });
});

describe('the log of a run', () => {
  test('is read in pages', async () => {
    const run = await submitted();
    await end(run);
    interface Page {
      readonly items: RunEvent[];
      readonly next_cursor: string | null;
    }
    const page = async (query: string) =>
      (await (await api.call(`/v1/runs/${run.run_id}/events?limit=1${query}`)).json()) as Page;
    await waitFor('both events behind the horizon', async () => {
      const all = await (await api.call(`/v1/runs/${run.run_id}/events`)).json();
      return (all as { items: RunEvent[] }).items.length === 2;
    });
    const first = await page('');
    const second = await page(`&cursor=${first.next_cursor}`);
    expect(first.items.map(({ type }) => type)[0]).toBe('run.queued');
    expect(second.items.at(-1)?.type).toBe('run.succeeded');
    expect(second.next_cursor).toBeNull();
    expect(await page('&after=1')).toEqual(second);
    expect(await page('&after=2')).toEqual({ items: [], next_cursor: null });
    expect(await page('&cursor=MS4x')).toMatchObject({ status: 422, code: 'request_invalid' });
  });

  test('is streamed as it grows, and the stream ends with the run', async () => {
    const run = await submitted();
    const answer = await stream(run);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toMatch(/^text\/event-stream/);
    const frames = readFrames(answer);
    expect((await frames.next()).value).toMatchObject({ event: 'run.queued' });
    await end(run);
    const rest: Record<string, string>[] = [];
    for await (const frame of frames) rest.push(frame);
    expect(rest.at(-1)).toMatchObject({ event: 'run.succeeded', id: expect.stringMatching(/^\d+$/) });
    expect(JSON.parse(rest.at(-1)?.data ?? '')).toMatchObject({ run_id: run.run_id, type: 'run.succeeded' });
  });

  test('continues after Last-Event-ID, without repeating and without a gap', async () => {
    const run = await submitted();
    await end(run);
    const all: Record<string, string>[] = [];
    for await (const frame of readFrames(await stream(run))) all.push(frame);
    const rest: Record<string, string>[] = [];
    for await (const frame of readFrames(await stream(run, { 'last-event-id': all[0]?.id ?? '' })))
      rest.push(frame);
    expect(rest).toEqual(all.slice(1));
  });

  test('has ended for who knows its end, although a line of a call came after it', async () => {
    const run = await submitted();
    await end(run);
    const all: Record<string, string>[] = [];
    for await (const frame of readFrames(await stream(run))) all.push(frame);
    const line = { level: 'info', message: 'late', endpoint: 'http://127.0.0.1:1' } as const;
    const place = { run_id: run.run_id, step_id: 'a', item: 0, attempt: 1 };
    await insertStepLog(api.db, [{ ...place, age_ms: 0, data: line }]);
    const late = await stream(run, { 'last-event-id': all.at(-1)?.id ?? '' });
    const rest: Record<string, string>[] = [];
    for await (const frame of readFrames(late)) rest.push(frame);
    expect(rest).toEqual([]);
  });

  test('is streamed to its end although another open transaction delays it', async () => {
    const other = await api.db.transaction();
    await other.raw('select pg_current_xact_id()');
    const run = await submitted();
    await end(run);
    const frames = readFrames(await stream(run));
    const first = frames.next();
    // Meanwhile the stream looks for what there is.
    for (let n = 0; n < 5; n++) await api.call(`/v1/runs/${run.run_id}/events`);
    await other.commit();
    const told = [(await first).value?.event];
    for await (const { event } of frames) told.push(event);
    expect(told).toEqual(['run.queued', 'run.succeeded']);
  });

  test('is not followed for a request that wants no body', async () => {
    const run = await submitted();
    const queries = () => api.log.filter((line) => line.includes('"method":"HEAD"')).length;
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    const many = isLong ? 50 : 20;
    for (let n = 0; n < many; n++) {
      const answer = await api.call(`/v1/runs/${run.run_id}/events`, {
        method: 'HEAD',
        headers: { accept: 'text/event-stream' },
      });
      expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
    }
    await waitFor('their ends', () => queries() >= many);
    expect(timers()).toBeLessThan(before + many / 2);
  });

  test('is no longer followed when the client goes away', async () => {
    const run = await submitted();
    const away = new AbortController();
    const frames = readFrames(await stream(run, { 'x-request-id': 'goes-away' }, away.signal));
    await frames.next();
    away.abort();
    await waitFor('the end of the stream', () => api.log.some((line) => line.includes('goes-away')));
    expect(api.log.find((line) => line.includes('goes-away'))).toContain('"aborted":true');
  });
});
