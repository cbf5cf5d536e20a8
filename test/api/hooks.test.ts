/** Hooks: requests from outside start runs by their signature alone, each once, and the log names the end of each. */
import { createHmac } from 'node:crypto';
import type {
  Hook,
  HookCreated,
  HookDelivery,
  HookDeliveryDetail,
  HookReceipt,
} from '@capstan/core/contracts/hook';
import type { Problem } from '@capstan/core/contracts/problem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { purgeReceived } from '../../src/db/webhook/hook.ts';
import { noMaintenance, readJson, startTestApi, type TestApi } from '../support/api.ts';

let api: TestApi;
beforeAll(async () => {
  // No maintenance: it would delete old deliveries before the test does.
  api = await startTestApi(noMaintenance);
  await storePipeline('receive');
});
afterAll(() => api.close());

async function storePipeline(pipeline: string, more: object = {}): Promise<void> {
  const definition = { pipeline, version: '1', steps: [{ id: 'a', wait: '1d' }], ...more };
  expect((await api.call('/v1/pipelines', { body: definition })).status).toBe(201);
}

let made = 0;

async function aHook(settings: object = {}): Promise<HookCreated> {
  made += 1;
  const body = { name: `hook-${made}`, pipeline: 'receive', signature: 'github', ...settings };
  const [status, hook] = await readJson<HookCreated>(api.call('/v1/hooks', { body }));
  expect([status, hook]).toEqual([201, expect.anything()]);
  return hook;
}

/** Sends to a hook as a stranger: without a key of Capstan. */
function send(
  hook: Pick<Hook, 'url'>,
  body: string | Uint8Array,
  headers: Record<string, string>,
): Promise<Response> {
  const type = { 'content-type': 'application/json' };
  return api.call(hook.url.slice(hook.url.indexOf('/v1/')), {
    method: 'POST',
    body,
    headers: { authorization: '', ...type, ...headers },
  });
}

function hmac(secret: string, text: string, form: 'hex' | 'base64' = 'hex'): string {
  return createHmac('sha256', secret).update(text).digest(form);
}

let deliveries = 0;

function asGithub(
  hook: HookCreated,
  value: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  deliveries += 1;
  const text = JSON.stringify(value);
  return send(hook, text, {
    'x-github-event': 'push',
    'x-github-delivery': `delivery-${deliveries}`,
    'x-hub-signature-256': `sha256=${hmac(hook.secret, text)}`,
    ...headers,
  });
}

function asSlack(hook: HookCreated, text: string, headers: Record<string, string> = {}): Promise<Response> {
  const time = String(Math.floor(Date.now() / 1_000));
  return send(hook, text, {
    'x-slack-request-timestamp': time,
    'x-slack-signature': `v0=${hmac(hook.secret, `v0:${headers['x-slack-request-timestamp'] ?? time}:${text}`)}`,
    ...headers,
  });
}

async function logOf({ name }: Pick<Hook, 'name'>): Promise<readonly HookDelivery[]> {
  const [, { items }] = await readJson<{ items: HookDelivery[] }>(api.call(`/v1/hooks/${name}/deliveries`));
  return items;
}

async function jobOf(run_id: string | null) {
  const row = await api.db('run').join('job', 'job.job_id', 'run.job_id').where({ run_id }).first('job.body');
  return row?.body as unknown;
}

describe('a delivery', () => {
  test('starts a run with the job, labels, priority and ceiling of the hook', async () => {
    const hook = await aHook({
      job: {
        repository: '{{ body.repository.name }}',
        event: '{{ headers.x-github-event }}',
        sum: '{{ body.n + 1 }}',
      },
      labels: { from: 'github' },
      priority: 'batch',
      budget_ceiling_usd: 2.5,
    });
    const [status, receipt] = await readJson<HookReceipt>(
      asGithub(hook, { repository: { name: 'reel' }, n: 2 }),
    );
    expect([status, receipt.outcome]).toEqual([202, 'started']);
    expect(await jobOf(receipt.run_id)).toEqual({ repository: 'reel', event: 'push', sum: 3 });
    const [, run] = await readJson<object>(api.call(`/v1/runs/${receipt.run_id}`));
    expect(run).toMatchObject({ labels: { from: 'github' }, priority: 'batch', budget_ceiling_usd: 2.5 });
    const row = await api.db('run').where({ run_id: receipt.run_id }).first('key_id');
    expect(row?.key_id).toBe(hook.created_by);
  });

  test.each([
    ['standard', 'c2VjcmV0LXNlY3JldC1zZWNyZXQ='],
    ['bearer', 'a-secret-of-a-program'],
    ['slack', '8f742231b10e8888abcd99yyyzzz85a5'],
  ])('of the form %s starts a run, by default with its body as the job', async (signature, secret) => {
    const hook = await aHook({ signature, secret });
    const text = JSON.stringify({ of: signature });
    const time = Math.floor(Date.now() / 1_000);
    const key = Buffer.from(secret, 'base64');
    const mac = createHmac('sha256', key).update(`m1.${time}.${text}`).digest('base64');
    const answer = await (signature === 'slack'
      ? asSlack(hook, text)
      : send(hook, text, {
          authorization: signature === 'bearer' ? `Bearer ${secret}` : '',
          ...(signature === 'standard'
            ? { 'webhook-id': 'm1', 'webhook-timestamp': String(time), 'webhook-signature': `v1,${mac}` }
            : {}),
        }));
    const receipt = (await answer.json()) as HookReceipt;
    expect([answer.status, receipt.outcome]).toEqual([signature === 'slack' ? 200 : 202, 'started']);
    expect(await jobOf(receipt.run_id)).toEqual({ of: signature });
  });

  test('with a wrong signature is refused, counted, and logged nowhere', async () => {
    const hook = await aHook();
    const forged = { 'x-hub-signature-256': `sha256=${hmac('another secret', '{"private":1}')}` };
    const [status, problem] = await readJson(asGithub(hook, { private: 1 }, forged));
    expect([status, problem.code]).toEqual([401, 'unauthenticated']);
    expect((await asGithub(hook, {}, { 'x-hub-signature-256': '' })).status).toBe(401);
    expect(await logOf(hook)).toEqual([]);
    const [, shown] = await readJson<Hook>(api.call(`/v1/hooks/${hook.name}`));
    expect(shown.refused).toMatchObject({ count: 2, reason: 'there is no X-Hub-Signature-256' });
    expect(api.log.join('')).not.toContain('"private"');
  });

  test('with a stale timestamp is refused, though its signature is right', async () => {
    const hook = await aHook({ signature: 'slack', secret: '8f742231b10e8888abcd99yyyzzz85a5' });
    const time = String(Math.floor(Date.now() / 1_000) - 301);
    const [status, problem] = await readJson(asSlack(hook, '{}', { 'x-slack-request-timestamp': time }));
    expect([status, problem.detail]).toEqual([401, expect.stringContaining('at most 300 s')]);
  });

  test('that comes again, also at the same moment, has the run of the first', async () => {
    const hook = await aHook();
    const again = { 'x-github-delivery': 'the-same' };
    const answers = await Promise.all([1, 2, 3].map(() => readJson<HookReceipt>(asGithub(hook, {}, again))));
    const later = await readJson<HookReceipt>(asGithub(hook, { other: 'body' }, again));
    const receipts = [...answers, later].map(([, receipt]) => receipt);
    expect(receipts.map(({ outcome }) => outcome).sort()).toEqual([
      'repeated',
      'repeated',
      'repeated',
      'started',
    ]);
    expect(new Set(receipts.map(({ run_id }) => run_id)).size).toBe(1);
  });

  test('has the key of the template, which is of its hook alone; null is none', async () => {
    const key = '{{ body.order ?? null }}';
    const [one, other] = [await aHook({ key }), await aHook({ key })];
    const start = async (hook: HookCreated, body: object) =>
      (await readJson<HookReceipt>(asGithub(hook, body)))[1];
    const first = await start(one, { order: 7, n: 1 });
    expect(await start(one, { order: 7, n: 2 })).toMatchObject({ outcome: 'repeated', run_id: first.run_id });
    expect(await start(one, { order: 8 })).toMatchObject({ outcome: 'started' });
    expect(await start(other, { order: 7 })).toMatchObject({ outcome: 'started' });
    expect(await start(one, {})).toMatchObject({ outcome: 'started' });
    expect(await start(one, {})).toMatchObject({ outcome: 'started' });
  });

  test('that the filter leaves out starts nothing, and the log has the reason', async () => {
    const hook = await aHook({ filter: "{{ body.action == 'opened' && headers.x-github-event == 'push' }}" });
    const [status, receipt] = await readJson<HookReceipt>(asGithub(hook, { action: 'closed' }));
    expect([status, receipt]).toMatchObject([202, { outcome: 'filtered', run_id: null }]);
    expect((await readJson<HookReceipt>(asGithub(hook, { action: 'opened' })))[1].outcome).toBe('started');
    expect((await logOf(hook)).map(({ outcome, reason }) => [outcome, reason])).toEqual([
      ['started', null],
      ['filtered', expect.stringContaining("body.action == 'opened'")],
    ]);
  });

  test.each([
    [
      'a template that names a missing field',
      { job: { a: '{{ body.a.b }}' } },
      'expression_unresolved',
      '/job/a',
    ],
    ['a filter over a missing field', { filter: 'body.a > 1' }, 'expression_unresolved', '/filter'],
    ['a key over a missing field', { key: '{{ body.a }}' }, 'expression_unresolved', '/key'],
    ['a job that is a list', { job: '{{ body.list }}' }, 'job_invalid', '/job'],
  ])('fails by %s, and the log has the finding', async (_, settings, code, pointer) => {
    const hook = await aHook(settings);
    const [status, problem] = await readJson(asGithub(hook, { list: [1] }));
    expect([status, problem.code, problem.errors?.[0]?.pointer]).toEqual([422, code, pointer]);
    expect(await logOf(hook)).toMatchObject([{ outcome: 'failed', reason: expect.stringContaining(code) }]);
  });

  test('fails where it is no JSON, and is refused where it is too large', async () => {
    const hook = await aHook();
    const as = (text: string) => ({ 'x-hub-signature-256': `sha256=${hmac(hook.secret, text)}` });
    const [status, problem] = await readJson(send(hook, '{"a":', as('{"a":')));
    expect([status, problem.code]).toEqual([400, 'malformed_json']);
    const plain = await send(hook, 'hello', { ...as('hello'), 'content-type': 'text/plain' });
    expect(plain.status).toBe(415);
    const large = JSON.stringify('x'.repeat(2_000_000));
    expect((await send(hook, large, as(large))).status).toBe(413);
    expect((await logOf(hook)).map(({ outcome }) => outcome)).toEqual(['failed', 'failed']);
  });

  test('is refused by a disabled hook, and by a pipeline that is gone', async () => {
    await storePipeline('short-lived');
    const [disabled, orphan] = [await aHook({ enabled: false }), await aHook({ pipeline: 'short-lived' })];
    await api.db('pipeline_version').where({ pipeline: 'short-lived' }).delete();
    for (const [hook, detail] of [
      [disabled, 'is disabled'],
      [orphan, 'no pipeline short-lived'],
    ] as const) {
      const [status, problem] = await readJson(asGithub(hook, {}));
      expect([status, problem.code, problem.detail]).toEqual([
        409,
        'state_conflict',
        expect.stringContaining(detail),
      ]);
      expect(await logOf(hook)).toMatchObject([{ outcome: 'refused', run_id: null }]);
    }
  });

  test('is refused as a request for its run, and may come again', async () => {
    await storePipeline('one-at-a-time', {
      concurrency: { key: 'k', limit: 1, on_limit: 'reject' },
      job_schema: { type: 'object', required: ['n'] },
    });
    const hook = await aHook({ pipeline: 'one-at-a-time' });
    const again = { 'x-github-delivery': 'retried' };
    expect((await readJson<Problem>(asGithub(hook, {})))[1].code).toBe('job_invalid');
    const [, first] = await readJson<HookReceipt>(asGithub(hook, { n: 1 }));
    const refused = await asGithub(hook, { n: 2 }, again);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
    await api
      .db('run')
      .where({ run_id: first.run_id })
      .update({ state: 'cancelled', finished_at: new Date() });
    expect((await readJson<HookReceipt>(asGithub(hook, { n: 2 }, again)))[1].outcome).toBe('started');
    expect((await logOf(hook)).map(({ outcome }) => outcome)).toEqual([
      'started',
      'refused',
      'started',
      'refused',
    ]);
  });

  test('to no hook, or without a project, is refused', async () => {
    const unknown = { url: `/v1/hooks/nothing?project_id=${api.projectId}` };
    expect((await send(unknown, '{}', {})).status).toBe(404);
    expect((await send({ url: '/v1/hooks/nothing' }, '{}', {})).status).toBe(422);
  });
});

describe('a sender that checks the address', () => {
  test('as GitHub does is answered, and the log has it', async () => {
    const hook = await aHook();
    const [status, receipt] = await readJson<HookReceipt>(
      asGithub(hook, { zen: 'Keep it logically awesome.' }, { 'x-github-event': 'ping' }),
    );
    expect([status, receipt]).toMatchObject([202, { outcome: 'answered', run_id: null }]);
    expect(await logOf(hook)).toMatchObject([{ outcome: 'answered' }]);
  });

  test('as Slack does gets its challenge, if it is signed', async () => {
    const hook = await aHook({ signature: 'slack', secret: '8f742231b10e8888abcd99yyyzzz85a5' });
    const text = JSON.stringify({ type: 'url_verification', challenge: '3eZb' });
    expect(await readJson(asSlack(hook, text))).toEqual([200, { challenge: '3eZb' }]);
    expect((await send(hook, text, {})).status).toBe(401);
  });
});

test.each([
  ['command=%2Fcut&text=clip+7&trigger_id=1.2', { command: '/cut', text: 'clip 7', trigger_id: '1.2' }],
  [`payload=${encodeURIComponent('{"type":"block_actions"}')}`, { type: 'block_actions' }],
])('a form of Slack is read, and its sender sees a text: %s', async (text, job) => {
  const hook = await aHook({ signature: 'slack', secret: '8f742231b10e8888abcd99yyyzzz85a5' });
  const type = { 'content-type': 'application/x-www-form-urlencoded' };
  const [status, { text: shown }] = await readJson<{ text: string }>(asSlack(hook, text, type));
  const [logged] = await logOf(hook);
  expect([status, shown]).toEqual([200, `started: ${logged?.run_id}`]);
  expect(await jobOf(logged?.run_id ?? null)).toEqual(job);
});

describe('the log', () => {
  test('has bodies and headers without secrets, and a delivery that is sent again by the hook as it is then', async () => {
    const secret = 'a-secret-of-a-program';
    const hook = await aHook({ signature: 'bearer', secret, job: { a: '{{ body.missing }}' } });
    const sent = { authorization: `Bearer ${secret}`, cookie: 'a=b', 'x-source': 'cms' };
    expect((await send(hook, '{"n":1}', sent)).status).toBe(422);
    const [failed] = await logOf(hook);
    const path = `/v1/hooks/${hook.name}/deliveries/${failed?.delivery_id}`;
    const [, detail] = await readJson<HookDeliveryDetail>(api.call(path));
    expect(detail).toMatchObject({ body: { n: 1 }, headers: { 'x-source': 'cms' }, bytes: 7 });
    expect(JSON.stringify(detail)).not.toMatch(/a-secret|a=b/);
    const settings = { pipeline: 'receive', signature: 'bearer', job: { n: '{{ body.n }}' } };
    expect((await api.call(`/v1/hooks/${hook.name}`, { method: 'PUT', body: settings })).status).toBe(200);
    const once = { 'idempotency-key': 'again-1' };
    const replays = await Promise.all(
      [0, 1].map(() => api.call(`${path}/replay`, { method: 'POST', headers: once })),
    );
    const receipts = (await Promise.all(replays.map((answer) => answer.json()))) as HookReceipt[];
    expect(receipts.map(({ outcome }) => outcome).sort()).toEqual(['repeated', 'started']);
    expect(new Set(receipts.map(({ run_id }) => run_id)).size).toBe(1);
    expect(await jobOf(receipts[0]?.run_id ?? null)).toEqual({ n: 1 });
    const [, other] = await readJson<HookReceipt>(api.call(`${path}/replay`, { method: 'POST' }));
    expect(other.outcome).toBe('started');
    expect((await logOf(hook)).map(({ replay_of }) => replay_of)).toContain(failed?.delivery_id);
  });

  test('keeps no large body, which cannot be sent again', async () => {
    const hook = await aHook();
    const [, { delivery_id }] = await readJson<HookReceipt>(asGithub(hook, { a: 'x'.repeat(70_000) }));
    const path = `/v1/hooks/${hook.name}/deliveries/${delivery_id}`;
    expect((await readJson<HookDeliveryDetail>(api.call(path)))[1]).toMatchObject({
      body: null,
      bytes: 70_008,
    });
    const [status, problem] = await readJson(api.call(`${path}/replay`, { method: 'POST' }));
    expect([status, problem.code]).toEqual([409, 'state_conflict']);
  });

  test('has the newest thousand of a hook, for 30 days', async () => {
    const [many, few] = [await aHook(), await aHook()];
    const fill = (hook: Hook, count: number, age: string) =>
      api.db.raw(
        `insert into hook_delivery (delivery_id, hook_id, outcome, headers, bytes, created_at)
         select 'rcv_' || gen_random_uuid(), :hook_id, 'filtered', '{}', 2, now() - :age::interval - n * interval '1 ms'
         from generate_series(1, :count) n`,
        { hook_id: hook.hook_id, count, age },
      );
    await fill(many, 1_005, '1 hour');
    await fill(few, 3, '31 days');
    await fill(few, 2, '29 days');
    expect(await purgeReceived(api.db)).toBe(8);
    const rows = await api.db('hook_delivery').whereIn('hook_id', [many.hook_id, few.hook_id]);
    expect(rows.length).toBe(1_002);
  });
});

describe('a secret', () => {
  test('works beside the new one until the overlap ends, and is shown by no other answer', async () => {
    const hook = await aHook({ secret: 'the-first-secret-of-all' });
    const rotate = (body: object) =>
      readJson<HookCreated>(api.call(`/v1/hooks/${hook.name}/rotate`, { body }));
    const [, renewed] = await rotate({});
    expect(renewed.former_until).not.toBeNull();
    expect((await asGithub(hook, {})).status).toBe(202);
    expect((await asGithub(renewed, {})).status).toBe(202);
    const [, last] = await rotate({ secret: 'the-last-secret-of-all', overlap_s: 0 });
    expect([(await asGithub(renewed, {})).status, (await asGithub(last, {})).status]).toEqual([401, 202]);
    const shown = await (await api.call(`/v1/hooks/${hook.name}`)).text();
    expect(shown + (await (await api.call('/v1/hooks?limit=200')).text())).not.toContain('of-all');
  });

  test.each([
    [{ signature: 'slack' }, '/secret'],
    [{ signature: 'standard', secret: 'not-base64-at-all!' }, '/secret'],
    [{ secret: 'short' }, '/secret'],
    [{ pipeline: 'recieve' }, '/pipeline'],
    [{ version: '9' }, '/version'],
    [{ alias: 'nowhere' }, '/alias'],
    [{ job: { a: ['{{ job.a }}'] } }, '/job/a/0'],
    [{ filter: 'body.a ==' }, '/filter'],
    [{ key: '{{ bodi.a }}' }, '/key'],
    [{ version: '1', alias: 'latest' }, '/alias'],
  ])('and settings are checked when they are written: %j', async (settings, pointer) => {
    const body = { name: 'wrong', pipeline: 'receive', signature: 'github', ...settings };
    const [status, problem] = await readJson(api.call('/v1/hooks', { body }));
    expect([status, problem.errors?.map((error) => error.pointer)]).toEqual([422, [pointer]]);
  });
});

test('a hook has its name in its project alone, is written with a key of an administrator, and ends with its log', async () => {
  const hook = await aHook({ name: 'named' });
  const body = { name: 'named', pipeline: 'receive', signature: 'github' };
  expect((await api.call('/v1/hooks', { body })).status).toBe(409);
  const reader = { authorization: `Bearer ${await api.createKey({ scopes: ['run:read', 'run:write'] })}` };
  expect((await api.call('/v1/hooks', { body: { ...body, name: 'other' }, headers: reader })).status).toBe(
    403,
  );
  expect((await api.call('/v1/hooks/named', { headers: reader })).status).toBe(200);
  const { projectId } = await api.createProject('other');
  expect((await send({ url: `/v1/hooks/named?project_id=${projectId}` }, '{}', {})).status).toBe(404);
  expect((await asGithub(hook, {})).status).toBe(202);
  expect((await api.call('/v1/hooks/named', { method: 'DELETE' })).status).toBe(204);
  expect((await asGithub(hook, {})).status).toBe(404);
  expect(await api.db('hook_delivery').where({ hook_id: hook.hook_id })).toEqual([]);
});
