import type { Key } from '@capstan/core/contracts/access';
import type { ScopedBudget, UserErased } from '@capstan/core/contracts/money';
import type { Problem } from '@capstan/core/contracts/problem';
import type { Run } from '@capstan/core/contracts/run';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Claim } from '../../src/db/attempt/attempt.ts';
import { findDrift } from '../../src/db/money/budget-drift.ts';
import { newId } from '../../src/parts/ids.ts';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import { aLimitedProject, execOn, registerInstance } from '../support/direct-calls.ts';
import { aClaim, anEnd, claimAttempts, settleAttempt } from '../support/factories.ts';
import { tablesNaming } from '../support/tables.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi({ MAINTENANCE_MS: 200 });
  await registerInstance(api, {
    name: 'model.paid',
    cost_model: { type: 'per_call', rate_usd: 1 },
    max_concurrency: 10,
  });
});
afterAll(() => api.close());

/** A project of its own, with a key for it. */
async function aProjectOf() {
  const { projectId, headers } = await aLimitedProject(api, 0);
  const call = (path: string, options: Parameters<TestApi['call']>[1] = {}) =>
    api.call(path, { ...options, headers: { ...headers, ...options.headers } });
  const put = (scope: string, body: object) =>
    readJson<ScopedBudget & Problem>(
      call(`/v1/budgets/scoped/${encodeURIComponent(scope)}`, { method: 'PUT', body }),
    );
  const list = async () =>
    (await readJson<{ items: ScopedBudget[] }>(call('/v1/budgets/scoped')))[1].items.map(
      ({ scope, period, limit_usd, spent_usd, reserved_usd }) =>
        `${scope} ${period} ${spent_usd}+${reserved_usd}/${limit_usd}`,
    );
  const exec = (labels = 'team=ads') =>
    execOn(api, 'model.paid', { headers: { ...headers, 'x-capstan-labels': labels } });
  return { projectId, call, put, list, exec };
}

describe('a scoped budget', () => {
  test('is set, listed, changed and removed', async () => {
    const { call, put, list } = await aProjectOf();
    const [status, budget] = await put('label:team=ads', { limit_usd: 2, period: 'month', soft: 0.5 });
    expect([status, budget]).toEqual([
      200,
      {
        scope: 'label:team=ads',
        period: 'month',
        limit_usd: 2,
        soft: 0.5,
        window: expect.stringMatching(/-01$/),
        timezone: 'UTC',
        spent_usd: 0,
        reserved_usd: 0,
        resets_at: expect.stringMatching(/-01T00:00:00\.000Z$/),
        forecast: null,
        reached: [],
      },
    ]);
    await put('user:anna/../b c%', { limit_usd: 1 });
    await put('label:team=ads', { limit_usd: 3, period: 'month' });
    expect(await list()).toEqual(['label:team=ads month 0+0/3', 'user:anna/../b c% day 0+0/1']);
    const path = '/v1/budgets/scoped/label:team=ads';
    expect((await call(path, { method: 'DELETE' })).status).toBe(404);
    expect((await call(`${path}?period=month`, { method: 'DELETE' })).status).toBe(204);
    expect(await list()).toEqual(['user:anna/../b c% day 0+0/1']);
  });

  test.each([
    ['team:ads', { limit_usd: 1 }],
    ['label:ads', { limit_usd: 1 }],
    ['key:a b', { limit_usd: 1 }],
    ['user:a', { limit_usd: 0 }],
    ['user:a', { limit_usd: 1, soft: 1 }],
    ['user:a', { limit_usd: 1, period: 'week' }],
  ])('is refused: %s %j', async (scope, body) => {
    const { put } = await aProjectOf();
    expect((await put(scope, body))[0]).toBe(422);
  });

  test('is refused when one call could match nine', async () => {
    const { put } = await aProjectOf();
    const names = Array.from({ length: 8 }, (_, at) => `label:l${at}=v`);
    for (const name of names) expect((await put(name, { limit_usd: 1 }))[0]).toBe(200);
    expect((await put('label:l0=w', { limit_usd: 1 }))[0]).toBe(200);
    const [status, problem] = await put('user:k', { limit_usd: 1 });
    expect([status, problem.errors?.[0]?.message]).toEqual([
      422,
      expect.stringContaining('one call could match 9'),
    ]);
  });

  test('of a key is refused unless a key or a person of the project has the id', async () => {
    const { put, call, list } = await aProjectOf();
    const { call: callElsewhere } = await aProjectOf();
    const keysBy = async (by: typeof call) =>
      (await readJson<{ items: Key[] }>(by('/v1/keys')))[1].items.map(({ key_id }) => key_id);
    const [own] = await keysBy(call);
    const [foreign] = await keysBy(callElsewhere);
    const [{ name = '' } = {}] = (await readJson<{ items: Key[] }>(call('/v1/keys')))[1].items;
    for (const id of [name, 'undefined', 'key_0000000000', foreign, `${own}x`, own?.toLowerCase()]) {
      const [status, problem] = await put(`key:${id}`, { limit_usd: 1 });
      expect([id, status, problem.errors?.[0]?.pointer]).toEqual([id, 422, '/path/scope']);
    }
    const [, named] = await put(`key:${name}`, { limit_usd: 1, period: 'month' });
    expect(named.errors?.[0]?.message).toContain(`is the name of ${own}`);
    expect((await put(`key:${own}`, { limit_usd: 1 }))[0]).toBe(200);
    expect(await list()).toEqual([`key:${own} day 0+0/1`]);
  });

  test('refuses a direct call by its name and figures, and calls with other labels pass', async () => {
    const { put, exec, list } = await aProjectOf();
    await put('label:team=ads', { limit_usd: 1.5, period: 'month' });
    expect((await exec('env=prod, team=ads')).status).toBe(200);
    const { status, body } = await exec();
    expect([status, body]).toEqual([
      402,
      expect.objectContaining({
        code: 'budget_exhausted',
        scope: 'label',
        budget: 'label:team=ads',
        period: 'month',
        limit_usd: 1.5,
        spent_usd: 1,
        resets_at: expect.any(String),
        minimum_usd: 1,
      }),
    ]);
    expect(body.detail).toContain('label:team=ads by month');
    expect((await exec('team=web')).status).toBe(200);
    expect(await list()).toEqual(['label:team=ads month 1+0/1.5']);
  });

  test('of a user refuses an OpenAI call as its clients expect', async () => {
    const { put, call } = await aProjectOf();
    await put('user:anna', { limit_usd: 0.5 });
    const body = { model: 'paid', messages: [{ role: 'user', content: 'Hi' }], user: 'anna' };
    const [status, refused] = await readJson<{ error: object }>(
      call('/openai/v1/chat/completions', { body }),
    );
    expect([status, refused.error]).toEqual([
      402,
      expect.objectContaining({ type: 'insufficient_quota', code: 'budget_exhausted' }),
    ]);
  });

  test('by total never resets, and refuses by its name', async () => {
    const { put, exec, call } = await aProjectOf();
    const [status, budget] = await put('label:team=ads', { limit_usd: 1.5, period: 'total' });
    expect([status, budget]).toEqual([
      200,
      expect.objectContaining({ period: 'total', window: null, resets_at: null, forecast: null }),
    ]);
    expect((await exec()).status).toBe(200);
    const { status: refused, body } = await exec();
    expect([refused, body]).toEqual([
      402,
      expect.objectContaining({ budget: 'label:team=ads', period: 'total', spent_usd: 1, resets_at: null }),
    ]);
    expect(body.detail).toContain('label:team=ads in total');
    const path = '/v1/budgets/scoped/label:team=ads';
    const [, missing] = await readJson<Problem>(call(`${path}?period=month`, { method: 'DELETE' }));
    expect(missing.detail).toBe('there is no budget of label:team=ads by month');
    expect((await call(`${path}?period=total`, { method: 'DELETE' })).status).toBe(204);
    expect((await exec()).status).toBe(200);
    expect(await findDrift(api.db)).toEqual([]);
  });

  test('by total is announced to a webhook once for each limit', async () => {
    const { projectId, put, exec, call } = await aProjectOf();
    const hook = { url: 'http://127.0.0.1:9/x', events: ['budget.reached'] };
    expect((await call('/v1/webhooks', { body: hook })).status).toBe(201);
    const told = async () =>
      (
        await api
          .db('webhook_delivery')
          .join('webhook', 'webhook.webhook_id', 'webhook_delivery.webhook_id')
          .where({ project_id: projectId })
          .pluck('payload')
      ).map(({ data }) => `${data.period} ${data.day} ${data.percent}% of ${data.limit_usd}`);
    await put('label:team=ads', { limit_usd: 1, period: 'total', soft: 0.9 });
    expect((await exec()).status).toBe(200);
    const first = ['total null 100% of 1', 'total null 90% of 1'];
    await waitFor('the deliveries', async () => (await told()).length > 1);
    expect((await told()).toSorted()).toEqual(first);
    await put('label:team=ads', { limit_usd: 2, period: 'total', soft: 0.9 });
    expect((await exec()).status).toBe(200);
    await waitFor('the next ones', async () => (await told()).length > 3);
    expect((await told()).toSorted()).toEqual([
      ...['total null 100% of 1', 'total null 100% of 2', 'total null 90% of 1', 'total null 90% of 2'],
    ]);
  });

  test('is announced to a webhook at its soft mark', async () => {
    const { projectId, put, exec, call } = await aProjectOf();
    const hook = { url: 'http://127.0.0.1:9/x', events: ['budget.reached'] };
    expect((await call('/v1/webhooks', { body: hook })).status).toBe(201);
    await put('label:team=ads', { limit_usd: 4, soft: 0.25 });
    expect((await exec()).status).toBe(200);
    expect((await exec()).status).toBe(200);
    const told = () =>
      api
        .db('webhook_delivery')
        .join('webhook', 'webhook.webhook_id', 'webhook_delivery.webhook_id')
        .where({ project_id: projectId })
        .pluck('payload');
    await waitFor('the delivery', async () => (await told()).length > 0);
    expect(await told()).toMatchObject([
      { type: 'budget.reached', data: { scope: 'label:team=ads', period: 'day', percent: 25, limit_usd: 4 } },
    ]);
  });
});

test("a user's id is erased wherever it is kept, and amounts stay", async () => {
  const { projectId, call, put } = await aProjectOf();
  await call('/v1/webhooks', { body: { url: 'http://127.0.0.1:9/x', events: ['budget.reached'] } });
  const paid = await api.db('instance').where({ name: 'model.paid' }).first();
  const mark = 'anna@example.org';
  await put(`user:${mark}`, { limit_usd: 2, period: 'month', soft: 0.1 });
  await put(`user:${mark}`, { limit_usd: 2 });
  await put(`user:${mark}`, { limit_usd: 2, period: 'total' });
  const claims = [0, 1].map((at) => {
    const claim = aClaim({ run_id: '', project_id: projectId }, paid, { step: null, key: newId('call') });
    const scopes = ['key:k', `user:${mark}`, `label:at=${at}`];
    return { ...claim, reserved_nano: 1_000_000_000n, scopes };
  });
  await claimAttempts(api.db, claims);
  await settleAttempt(api.db, anEnd(claims[0] as Claim, { settled_nano: 900_000_000n }));
  await waitFor('the delivery', async () => (await tablesNaming(api.db, mark)).includes('webhook_delivery'));
  const job = { job_type: 'caption', prompt: 'Write one.', escalation_level: 1 };
  const asked = await call('/v1/escalations', { body: job, headers: { 'x-capstan-user': mark } });
  expect(asked.status).toBe(202);
  expect(await tablesNaming(api.db, mark)).toEqual(
    expect.arrayContaining([
      'attempt',
      'audit',
      'budget',
      'escalation',
      'ledger_entry',
      'scoped_budget',
      'webhook_delivery',
    ]),
  );
  const [status, erased] = await readJson<UserErased>(
    call(`/v1/users/${encodeURIComponent(mark)}`, { method: 'DELETE' }),
  );
  expect([status, erased]).toEqual([200, { calls: 2, pseudonym: expect.stringMatching(/^ers_/) }]);
  expect(await tablesNaming(api.db, mark)).toEqual([]);
  await settleAttempt(api.db, anEnd(claims[1] as Claim, { settled_nano: 100_000_000n }));
  expect(await findDrift(api.db)).toEqual([]);
  const sums = await api
    .db('budget')
    .whereLike('scope', `budget:${projectId}:%`)
    .select('spent_nano', 'reserved_nano');
  expect(sums).toEqual([1, 2, 3].map(() => ({ spent_nano: '1000000000', reserved_nano: '0' })));
});

test('a run keeps the key that started it', async () => {
  const { call } = await aProjectOf();
  const definition = { pipeline: 'p', version: '1', steps: [{ id: 'a', capability: 'model.paid' }] };
  const [status, run] = await readJson<Run>(call('/v1/runs', { body: { definition, job: {} } }));
  expect(status).toBe(202);
  const [row] = await api.db('run').where({ run_id: run.run_id }).select('key_id');
  expect(row).toEqual({ key_id: run.started_by?.id });
});

test('a change of the time zone keeps what each date has spent, and gives its limit of now to the date that has begun', async () => {
  const { projectId, call, put, list, exec } = await aProjectOf();
  const move = async (timezone: string) =>
    (await call(`/v1/projects/${projectId}/settings`, { method: 'PUT', body: { timezone } })).status;
  expect([await move('Mars/One'), await move('posixrules'), await move('Etc/GMT+12')]).toEqual([
    422, 422, 200,
  ]);
  await put('label:team=ads', { limit_usd: 5 });
  expect((await exec()).status).toBe(200);
  expect(await move('Pacific/Kiritimati')).toBe(200); // 26 hours ahead: another date
  expect(await list()).toEqual(['label:team=ads day 0+0/5']);
  await put('label:team=ads', { limit_usd: 1 });
  expect((await exec()).status).toBe(200);
  expect((await exec()).status).toBe(402);
  expect(await move('Etc/GMT+12')).toBe(200);
  expect(await list()).toEqual(['label:team=ads day 1+0/1']);
  expect((await exec()).status).toBe(402);
  expect(await findDrift(api.db)).toEqual([]);
  const costs = await readJson<{ timezone: string }>(call('/v1/costs'));
  expect(costs).toMatchObject([200, { timezone: 'Etc/GMT+12' }]);
});
