/** Webhooks: events reach a receiver, signed, until it accepts them; and no other receiver. */
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { WebhookCreated, WebhookDelivery, WebhookList } from '@capstan/core/contracts/webhook';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { insertReview } from '../../src/db/review/review.ts';
import { finishRun } from '../../src/db/run/run.ts';
import { newId } from '../../src/parts/ids.ts';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import { aClaim, anEnd, anInstance, aRun, claimAttempt, settleAttempt } from '../support/factories.ts';
import { waitFor } from '../support/wait.ts';

interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

let api: TestApi;
let receiver: Server;
let url: string;
let received: Received[] = [];
let answers: number[] = [];

beforeAll(async () => {
  api = await startTestApi({ MAINTENANCE_MS: 200 });
  receiver = createServer(async (request, response) => {
    received.push({ path: request.url ?? '', headers: request.headers, body: await text(request) });
    response.statusCode = answers.shift() ?? 204;
    if (response.statusCode === 302) response.setHeader('location', `${url}elsewhere`);
    response.end();
  }).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
});
beforeEach(() => {
  received = [];
  answers = [];
});
afterAll(async () => {
  receiver.close();
  await api.close();
});

async function aWebhook(changes: object = {}, headers: Record<string, string> = {}): Promise<WebhookCreated> {
  const body = { url: `${url}hook?a=1`, events: ['run.ended'], ...changes };
  const [status, made] = await readJson<WebhookCreated>(api.call('/v1/webhooks', { body, headers }));
  expect(status).toBe(201);
  return made;
}

async function endRun(project_id: string, state: 'succeeded' | 'failed' = 'succeeded') {
  const run = await aRun(api.db, { project_id });
  await finishRun(api.db, { run_id: run.run_id, state, output: null, error: null, step_ids: [] });
  return run;
}

/** An instance of the project that is down. @returns its endpoint */
async function loseInstance(owner_project: string): Promise<string> {
  const { endpoint } = await anInstance(api.db, { owner_project });
  const down_since = api.db.raw("now() + '1 microsecond'");
  await api.db('instance').where({ endpoint }).update({ state: 'down', reason: 'gone', down_since });
  return endpoint;
}

/** Half of what the project may spend in a day. */
async function spendHalf(project_id: string, headers: Record<string, string>): Promise<void> {
  const body = { scope: 'project', daily_limit_usd: 2 };
  expect((await api.call('/v1/budgets', { method: 'PUT', body, headers })).status).toBe(200);
  const instance = await anInstance(api.db, { cost_type: 'per_call', rate_usd: 1 });
  const claim = aClaim(await aRun(api.db, { project_id }), instance, { reserved_nano: 1_000_000_000n });
  await claimAttempt(api.db, claim);
  await settleAttempt(api.db, anEnd(claim, { settled_nano: 1_000_000_000n }));
}

/** Whether a receiver that knows the secret believes it. */
function isSigned({ headers, body }: Received, secret: string): boolean {
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64');
  const digest = createHmac('sha256', key).update(signed).digest('base64');
  return headers['webhook-signature'] === `v1,${digest}`;
}

async function aProject(): Promise<{ projectId: string; headers: Record<string, string> }> {
  const { projectId, apiKey } = await api.createProject('told');
  return { projectId, headers: { authorization: `Bearer ${apiKey}` } };
}

/** Every time in it, at any position. */
function timesOf(body: string): string[] {
  return [...body.matchAll(/"(\d{4}-\d\d-\d\dT[^"]*)"/g)].map(([, time = '']) => time);
}

describe('times', () => {
  test('of every event have the form of the API, and are those that it shows', async () => {
    const { projectId, headers } = await aProject();
    const events = ['run.ended', 'review.opened', 'budget.reached', 'instance.down'];
    const { webhook_id } = await aWebhook({ events }, headers);
    const run = await endRun(projectId);
    const review = { review_id: newId('review'), project_id: projectId, kind: 'ops', reason: 'look' };
    await insertReview(api.db, { ...review, payload: {}, due_in_ms: 60_000 } as never);
    await spendHalf(projectId, headers);
    await loseInstance(projectId);
    await api.call(`/v1/webhooks/${webhook_id}/test`, { method: 'POST', headers });
    await waitFor(
      'every kind of event',
      () => new Set(received.map(({ body }) => JSON.parse(body).type)).size === 5,
    );
    const times = received.flatMap(({ body }) => timesOf(body));
    expect(times.length).toBeGreaterThanOrEqual(9);
    for (const time of times) expect(time).toBe(new Date(time).toISOString());
    const [, { created_at, finished_at }] = await readJson<{ created_at: string; finished_at: string }>(
      api.call(`/v1/runs/${run.run_id}`, { headers }),
    );
    const ended = received.map(({ body }) => JSON.parse(body)).find(({ type }) => type === 'run.ended');
    expect(ended).toMatchObject({ at: finished_at, data: { created_at, finished_at } });
  });
});

describe('an event', () => {
  test('is sent once, signed, to the exact address', async () => {
    const { projectId, headers } = await aProject();
    const { secret } = await aWebhook({}, headers);
    const before = Math.floor(Date.now() / 1_000);
    const run = await endRun(projectId, 'failed');
    await waitFor('the run to be told', () => received.length > 0);
    const [told] = received as [Received];
    expect(told.path).toBe('/hook?a=1');
    expect(told.headers['content-type']).toBe('application/json');
    expect(JSON.parse(told.body)).toMatchObject({
      type: 'run.ended',
      at: expect.any(String),
      data: { run_id: run.run_id, pipeline: 'trailer', state: 'failed' },
    });
    expect(isSigned(told, secret)).toBe(true);
    expect(isSigned({ ...told, body: told.body.replace('failed', 'succeeded') }, secret)).toBe(false);
    const seconds = Number(told.headers['webhook-timestamp']);
    expect(seconds).toBeGreaterThanOrEqual(before);
    expect(seconds).toBeLessThanOrEqual(Date.now() / 1_000);
    await endRun(projectId);
    await waitFor('the next one', () => received.length > 1);
    expect(received).toHaveLength(2);
  });

  test('of a run has its cost, with that of child runs, and the run that it repeats', async () => {
    const { projectId: project_id, headers } = await aProject();
    await aWebhook({}, headers);
    const failed = await aRun(api.db, { project_id });
    const run = await aRun(api.db, { project_id, rerun_of: failed.run_id });
    const parent_step = { parent_run_id: run.run_id, parent_step_id: 'a', parent_item: 0 };
    const child = await aRun(api.db, { project_id, ...parent_step });
    const instance = await anInstance(api.db, { cost_type: 'per_call', rate_usd: 1, max_concurrency: 9 });
    for (const { run_id } of [child, run]) {
      const claim = aClaim({ run_id, project_id }, instance, { reserved_nano: 900_000_000n });
      await claimAttempt(api.db, claim);
      await settleAttempt(api.db, anEnd(claim, { settled_nano: 25_000_000n }));
      await finishRun(api.db, { run_id, state: 'succeeded', output: null, error: null, step_ids: [] });
    }
    await waitFor('the run to be told', () => received.length > 0);
    expect(received.map(({ body }) => JSON.parse(body).data)).toEqual([
      expect.objectContaining({ run_id: run.run_id, rerun_of: failed.run_id, cost_usd: 0.05 }),
    ]);
  });

  test('is sent to each webhook that subscribes to runs, reviews, budgets or instances', async () => {
    const { projectId, headers } = await aProject();
    const events = ['review.opened', 'budget.reached', 'instance.down'];
    const { secret } = await aWebhook({ events }, headers);
    // A webhook of an earlier test may still get an event.
    const own = () => received.filter((one) => isSigned(one, secret));
    await endRun(projectId);
    const review = { review_id: newId('review'), project_id: projectId, kind: 'ops', reason: 'look' };
    await insertReview(api.db, { ...review, payload: {}, due_in_ms: 60_000 } as never);
    const day = expect.stringMatching(/^\d{4}-\d\d-\d\d$/);
    await spendHalf(projectId, headers);
    const endpoint = await loseInstance(projectId);
    await waitFor('three things to be told', () => own().length >= 3);
    const told = own()
      .map(({ body }) => JSON.parse(body))
      .sort((a, b) => (a.type < b.type ? -1 : 1));
    expect(told).toMatchObject([
      { type: 'budget.reached', data: { day, percent: 50, limit_usd: 2, spent_usd: 1 } },
      { type: 'instance.down', data: { endpoint, reason: 'gone' } },
      { type: 'review.opened', data: { review_id: review.review_id, kind: 'ops', reason: 'look' } },
    ]);
  });

  test('before the subscription, or in another project, is not sent', async () => {
    const { projectId, headers } = await aProject();
    await endRun(projectId);
    await aWebhook({}, headers);
    await endRun(api.projectId);
    const run = await endRun(projectId);
    await waitFor('the run to be told', () => received.length > 0);
    expect(received.map(({ body }) => JSON.parse(body).data.run_id)).toEqual([run.run_id]);
  });

  test('is sent again until the receiver accepts it, and the log lists each attempt', async () => {
    const { projectId, headers } = await aProject();
    const { webhook_id } = await aWebhook({}, headers);
    answers = [500, 204];
    const endedAt = Date.now();
    await endRun(projectId);
    const log = async () =>
      (
        await readJson<{ items: WebhookDelivery[] }>(
          api.call(`/v1/webhooks/${webhook_id}/deliveries`, { headers }),
        )
      )[1].items;
    const failed = await waitFor('the first try', async () =>
      (await log()).find(({ attempts }) => attempts === 1),
    );
    expect(failed).toMatchObject({ state: 'pending', status: 500, error: 'answered 500', finished_at: null });
    expect(Date.parse(failed.next_try_at ?? '')).toBeGreaterThan(endedAt + 2_000);
    await api.db('webhook_delivery').where({ webhook_id }).update({ next_try_at: new Date() });
    const taken = await waitFor('the second try', async () =>
      (await log()).find(({ attempts }) => attempts === 2),
    );
    expect(taken).toMatchObject({ state: 'delivered', status: 204, next_try_at: null });
    expect(taken).not.toHaveProperty('error');
    expect(received[0]?.headers['webhook-id']).toBe(received[1]?.headers['webhook-id']);
  });

  test('is given up after a day', async () => {
    const { projectId, headers } = await aProject();
    const { webhook_id } = await aWebhook({}, headers);
    answers = [500, 500];
    await endRun(projectId);
    await waitFor('the first try', async () =>
      api.db('webhook_delivery').where({ webhook_id, attempts: 1 }).first(),
    );
    await api.db('webhook_delivery').where({ webhook_id }).update({ attempts: 8, next_try_at: new Date() });
    const row = await waitFor('the last', async () =>
      api.db('webhook_delivery').where({ webhook_id, attempts: 9 }).first(),
    );
    expect([row.state, row.next_try_at]).toEqual(['failed', null]);
  });
});

describe('a test', () => {
  test('reports the answer of the receiver', async () => {
    const { webhook_id, secret } = await aWebhook();
    const ask = () =>
      readJson<WebhookDelivery>(api.call(`/v1/webhooks/${webhook_id}/test`, { method: 'POST' }));
    expect(await ask()).toMatchObject([200, { event: 'test', state: 'delivered', status: 204, attempts: 1 }]);
    expect(isSigned(received[0] as Received, secret)).toBe(true);
    answers = [302];
    expect(await ask()).toMatchObject([200, { state: 'failed', status: 302, error: 'answered 302' }]);
    expect(received.some(({ path }) => path === '/elsewhere')).toBe(false);
  });

  test('of a missing webhook is 404', async () => {
    const { webhook_id } = await aWebhook({ url: 'http://127.0.0.1:9/' });
    const [, tried] = await readJson<WebhookDelivery>(
      api.call(`/v1/webhooks/${webhook_id}/test`, { method: 'POST' }),
    );
    expect(tried).toMatchObject({ state: 'failed', status: null, error: 'no answer: ECONNREFUSED' });
  });
});

describe('an address', () => {
  test.each([
    'http://169.254.169.254/latest/meta-data',
    'http://[::ffff:169.254.169.254]/',
    'http://0.0.0.0/',
    'http://8.8.8.8/',
    'ftp://10.0.0.1/',
    'http://user:pass@10.0.0.1/',
    'http://10.0.0.1/#x',
    'nonsense',
  ])('%s is refused', async (address) => {
    const body = { url: address, events: ['run.ended'] };
    expect((await readJson(api.call('/v1/webhooks', { body })))[0]).toBe(422);
  });

  test('that is a name is judged when it is dialled', async () => {
    const { webhook_id } = await aWebhook({ url: 'http://metadata.invalid/' });
    const [, tried] = await readJson<WebhookDelivery>(
      api.call(`/v1/webhooks/${webhook_id}/test`, { method: 'POST' }),
    );
    expect(tried).toMatchObject({ state: 'failed', status: null });
  });
});

describe('webhooks', () => {
  test('are listed without their secrets, changed by admins, and end with their log', async () => {
    const { headers } = await aProject();
    const { webhook_id, secret } = await aWebhook({}, headers);
    const [, list] = await readJson<WebhookList>(api.call('/v1/webhooks', { headers }));
    expect(list.items.map((one) => one.webhook_id)).toEqual([webhook_id]);
    expect(JSON.stringify(list)).not.toContain(secret);
    const weak = { authorization: `Bearer ${await api.createKey({ scopes: ['run:read'] })}` };
    expect((await api.call('/v1/webhooks', { headers: weak })).status).toBe(403);
    expect((await api.call(`/v1/webhooks/${webhook_id}/deliveries`)).status).toBe(404);
    expect((await api.call(`/v1/webhooks/${webhook_id}`, { method: 'DELETE' })).status).toBe(404);
    expect((await api.call(`/v1/webhooks/${webhook_id}`, { method: 'DELETE', headers })).status).toBe(204);
    expect((await readJson<WebhookList>(api.call('/v1/webhooks', { headers })))[1].items).toEqual([]);
  });

  test('are at most twenty', async () => {
    const { headers } = await aProject();
    for (let count = 0; count < 20; count++) await aWebhook({}, headers);
    const body = { url, events: ['run.ended'] };
    const [status, { code }] = await readJson(api.call('/v1/webhooks', { body, headers }));
    expect([status, code]).toEqual([409, 'limit_reached']);
  });
});
