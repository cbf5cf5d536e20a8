import type { AuditEntry, Key } from '@capstan/core/contracts/access';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi({}, { keyTrustMs: 0 });
});
afterAll(() => api.close());

interface Made {
  readonly key_id: string;
  readonly key: string;
}

function as(key: string) {
  return { authorization: `Bearer ${key}` };
}

async function make(by: string, body: object): Promise<Made> {
  const answer = await api.call('/v1/keys', {
    headers: as(by),
    body: { name: 'made', scopes: ['admin'], ...body },
  });
  expect(answer.status).toBe(201);
  return (await answer.json()) as Made;
}

async function makeProject(by: string, name: string): Promise<string> {
  const [, { project_id }] = await readJson<{ project_id: string }>(
    api.call('/v1/projects', { headers: as(by), body: { name } }),
  );
  return project_id;
}

async function statusOf(key: string, path = '/v1/pipelines'): Promise<number> {
  return (await api.call(path, { headers: as(key) })).status;
}

async function listedBy(key: string): Promise<readonly Key[]> {
  const [, { items }] = await readJson<{ items: Key[] }>(
    api.call('/v1/keys?limit=200', { headers: as(key) }),
  );
  return items;
}

async function revoke(by: string, { key_id }: Made): Promise<number> {
  return (await api.call(`/v1/keys/${key_id}`, { method: 'DELETE', headers: as(by) })).status;
}

async function actsOn(subject: string, by = api.apiKey, project = api.projectId) {
  const headers = { ...as(by), 'x-project-id': project };
  const [, { items }] = await readJson<{ items: AuditEntry[] }>(
    api.call(`/v1/audit?subject=${subject}`, { headers }),
  );
  return items.map(({ action, actor, data }) => ({ action, actor, data })).reverse();
}

function idOf(key: string): string {
  return `key_${key.split('_')[2]}`;
}

const everyScope = ['admin', 'run:read', 'run:write', 'pipeline:write'];

test('a revocation lists the objects and the open runs of the key and of keys that it made', async () => {
  const maker = await make(api.apiKey, { projects: [api.projectId], scopes: everyScope });
  const below = await make(maker.key, { projects: [api.projectId], scopes: everyScope });
  const other = await make(api.apiKey, { projects: [api.projectId], scopes: everyScope });
  const pipeline = { pipeline: 'kept', version: '1', steps: [{ id: 'a', capability: 'c', input: {} }] };
  await api.call('/v1/pipelines', { body: pipeline });
  const webhook = { url: 'https://example.com/told', events: ['run.ended'] };
  const named = (name: string) => ({ name, pipeline: 'kept', cron: '0 3 * * *' });
  const [, hook] = await readJson<{ webhook_id: string }>(
    api.call('/v1/webhooks', { body: webhook, headers: as(maker.key) }),
  );
  const [, mine] = await readJson<{ schedule_id: string }>(
    api.call('/v1/schedules', { body: named('goes-on'), headers: as(below.key) }),
  );
  const delivery = { name: 'from-outside', pipeline: 'kept', signature: 'github' };
  const [, inward] = await readJson<{ hook_id: string }>(
    api.call('/v1/hooks', { body: delivery, headers: as(below.key) }),
  );
  await api.call('/v1/schedules', { body: named('of-another'), headers: as(other.key) });
  const revocation = () => readJson(api.call(`/v1/keys/${maker.key_id}`, { method: 'DELETE' }));
  const going_on = {
    webhooks: [{ webhook_id: hook.webhook_id, project_id: api.projectId, url: webhook.url }],
    hooks: [{ hook_id: inward.hook_id, project_id: api.projectId, name: 'from-outside' }],
    schedules: [
      {
        schedule_id: mine.schedule_id,
        project_id: api.projectId,
        name: 'goes-on',
      },
    ],
  };
  const [status, body] = await revocation();
  expect([status, body]).toEqual([
    200,
    { key_ids: expect.arrayContaining([maker.key_id, below.key_id]), going_on },
  ]);
  expect(await revocation()).toEqual([200, { key_ids: [], going_on }]);
});

describe('keys that share a project', () => {
  test('are listed and revoked by each other, also when one of them holds more', async () => {
    const [owner, leaked] = [
      await make(api.apiKey, { projects: [api.projectId] }),
      await make(api.apiKey, { projects: [api.projectId] }),
    ];
    const second = await makeProject(leaked.key, 'second');
    const seen = (await listedBy(owner.key)).find(({ key_id }) => key_id === leaked.key_id);
    expect(seen).toMatchObject({ projects: [api.projectId], created_by: idOf(api.apiKey) });
    expect(seen?.projects).not.toContain(second);
    expect(await revoke(owner.key, leaked)).toBe(200);
    expect(await statusOf(leaked.key)).toBe(401);
  });

  test('do not take out the operator, whose key only an operator revokes', async () => {
    const tenant = await make(api.apiKey, { projects: [api.projectId] });
    const root = { key_id: idOf(api.apiKey), key: api.apiKey };
    expect(await revoke(tenant.key, root)).toBe(403);
    expect(await statusOf(api.apiKey)).toBe(200);
  });
});

describe('a key that another key made', () => {
  test('is revoked with it, and so is every key below', async () => {
    const parent = await make(api.apiKey, { projects: [api.projectId] });
    const child = await make(parent.key, { projects: [api.projectId] });
    const grandchild = await make(child.key, { projects: [api.projectId], scopes: ['run:read'] });
    expect(await statusOf(grandchild.key, '/v1/limits')).toBe(200);
    expect(await revoke(api.apiKey, parent)).toBe(200);
    expect([await statusOf(child.key), await statusOf(grandchild.key, '/v1/limits')]).toEqual([401, 401]);
  });

  test('ends with it at the latest', async () => {
    const expires_at = new Date(Date.now() + 60_000).toISOString();
    const later = new Date(Date.now() + 120_000).toISOString();
    const parent = await make(api.apiKey, { projects: [api.projectId], expires_at });
    const child = await make(parent.key, { projects: [api.projectId] });
    const shown = (await listedBy(parent.key)).find(({ key_id }) => key_id === child.key_id);
    expect(shown).toMatchObject({ expires_at, created_by: parent.key_id });
    const body = { name: 'x', scopes: ['admin'], projects: [api.projectId], expires_at: later };
    expect(await readJson(api.call('/v1/keys', { headers: as(parent.key), body }))).toMatchObject([
      422,
      { code: 'request_invalid', errors: [{ pointer: '/expires_at' }] },
    ]);
  });

  test('may not do more than it', async () => {
    const admin = await make(api.apiKey, { projects: [api.projectId] });
    const body = { name: 'x', scopes: ['operator'], projects: [api.projectId] };
    expect(await readJson(api.call('/v1/keys', { headers: as(admin.key), body }))).toMatchObject([
      403,
      { code: 'forbidden' },
    ]);
    await make(api.apiKey, { projects: [api.projectId], scopes: ['operator'] });
  });

  test('cannot come to be while the one that makes it is revoked', async () => {
    for (let round = 0; round < 10; round++) {
      const parent = await make(api.apiKey, { projects: [api.projectId] });
      const body = { name: 'late', scopes: ['admin'], projects: [api.projectId] };
      const [made, gone] = await Promise.all([
        api.call('/v1/keys', { headers: as(parent.key), body }).catch(() => null), // cut off, as revoked keys are
        revoke(api.apiKey, parent),
      ]);
      expect(gone).toBe(200);
      if (made?.status !== 201) continue;
      expect(await statusOf(((await made.json()) as Made).key)).toBe(401);
    }
  });
});

test('a new project belongs to the key that made it and to those it came from', async () => {
  const parent = await make(api.apiKey, { projects: [api.projectId] });
  const sibling = await make(api.apiKey, { projects: [api.projectId] });
  const child = await make(parent.key, { projects: [api.projectId] });
  const project = await makeProject(child.key, 'below');
  const holds = async (key: string) =>
    (await (await api.call('/v1/projects?limit=200', { headers: as(key) })).text()).includes(project);
  const held = await Promise.all([child.key, parent.key, api.apiKey, sibling.key].map(holds));
  expect(held).toEqual([true, true, true, false]);
});

describe('rotating a key', () => {
  const rotate = (by: string, key: Made, overlap_s?: number) =>
    api.call(`/v1/keys/${key.key_id}/rotate`, {
      headers: as(by),
      body: overlap_s === undefined ? {} : { overlap_s },
    });

  test('gives it another secret, and the former one works during the overlap', async () => {
    const old = await make(api.apiKey, { projects: [api.projectId] });
    const [status, made] = await readJson<Made>(rotate(api.apiKey, old, 60));
    expect([status, made.key_id]).toEqual([200, old.key_id]);
    expect([await statusOf(old.key), await statusOf(made.key)]).toEqual([200, 200]);
    await api
      .db('api_key')
      .where({ key_id: old.key_id })
      .update({ former_until: new Date(0) });
    expect([await statusOf(old.key), await statusOf(made.key)]).toEqual([401, 200]);
  });

  test('without an overlap ends the former secret at once', async () => {
    const old = await make(api.apiKey, { projects: [api.projectId] });
    const [, made] = await readJson<Made>(rotate(old.key, old, 0));
    expect([await statusOf(old.key), await statusOf(made.key)]).toEqual([401, 200]);
    expect(await revoke(api.apiKey, made)).toBe(200);
    expect(await statusOf(made.key)).toBe(401);
  });

  test('is not for the former secret, which leaves nothing that outlives it', async () => {
    const old = await make(api.apiKey, { projects: [api.projectId] });
    await rotate(api.apiKey, old, 60);
    expect((await rotate(old.key, old)).status).toBe(403);
    const link = await api.call('/v1/login-links', { method: 'POST', headers: as(old.key) });
    expect(link.status).toBe(403);
    const opened = await api.call('/v1/session', { body: { key: old.key }, headers: { authorization: '' } });
    expect(opened.ok).toBe(true);
    const [session] = await api.db('session').where({ key_id: old.key_id });
    const { former_until } = await api.db('api_key').where({ key_id: old.key_id }).first();
    expect(session.expires_at).toEqual(former_until);
  });

  test('lets a revocation during the overlap end both secrets', async () => {
    const old = await make(api.apiKey, { projects: [api.projectId] });
    const rotatedAt = Date.now();
    const [, made] = await readJson<Made>(rotate(api.apiKey, old));
    const { former_until } = await api.db('api_key').where({ key_id: old.key_id }).first();
    expect(former_until.getTime()).toBeGreaterThanOrEqual(rotatedAt + 86_400_000);
    expect(await revoke(api.apiKey, made)).toBe(200);
    expect([await statusOf(old.key), await statusOf(made.key)]).toEqual([401, 401]);
  });

  test('is for the key itself and those that it came from', async () => {
    const [one, other] = [
      await make(api.apiKey, { projects: [api.projectId] }),
      await make(api.apiKey, { projects: [api.projectId] }),
    ];
    expect((await rotate(one.key, other)).status).toBe(404);
    expect((await rotate(one.key, { key_id: 'key_missing', key: '' })).status).toBe(404);
    expect(await revoke(api.apiKey, one)).toBe(200);
    expect((await rotate(api.apiKey, one)).status).toBe(404);
  });
});

describe('the audit log', () => {
  test('holds what was done to keys and projects', async () => {
    const parent = await make(api.apiKey, { projects: [api.projectId] });
    const child = await make(parent.key, { projects: [api.projectId], scopes: ['run:read'] });
    const project = await makeProject(parent.key, 'told');
    await api.call(`/v1/keys/${child.key_id}/rotate`, { headers: as(parent.key), body: {} });
    await revoke(api.apiKey, parent);
    const actor = idOf(api.apiKey);
    expect(await actsOn(parent.key_id)).toEqual([
      { action: 'key.created', actor, data: { name: 'made', scopes: ['admin'] } },
      { action: 'key.revoked', actor, data: {} },
    ]);
    expect(await actsOn(child.key_id)).toEqual([
      { action: 'key.created', actor: parent.key_id, data: { name: 'made', scopes: ['run:read'] } },
      { action: 'key.rotated', actor: parent.key_id, data: { overlap_s: 86_400 } },
      { action: 'key.revoked', actor, data: { revoked_with: parent.key_id } },
    ]);
    expect(await actsOn(project, api.apiKey, project)).toEqual([
      { action: 'project.created', actor: parent.key_id, data: { name: 'told' } },
    ]);
  });

  test('holds limits, aliases, schedules and deregistrations', async () => {
    const actor = idOf(api.apiKey);
    const put = (path: string, body: object) => api.call(path, { method: 'PUT', body });
    await put('/v1/budgets', { scope: 'project', daily_limit_usd: 3 });
    await put('/v1/budgets', { scope: 'global', daily_limit_usd: 0 });
    expect(await actsOn(api.projectId)).toEqual([
      { action: 'budget.limited', actor, data: { scope: 'project', daily_limit_usd: 3 } },
    ]);
    expect(await actsOn('global')).toEqual([
      { action: 'budget.limited', actor, data: { scope: 'global', daily_limit_usd: 0 } },
    ]);
    const definition = { pipeline: 'told', version: '1', steps: [{ id: 'a', capability: 'concat' }] };
    await api.call('/v1/pipelines', { body: definition });
    expect((await put('/v1/pipelines/told/aliases/live', { version: '1' })).status).toBe(200);
    expect(await actsOn('told@live')).toEqual([{ action: 'alias.set', actor, data: { version: '1' } }]);
    const address = 'http://10.1.1.1:9';
    const instance = {
      name: 'told',
      version: '1',
      endpoint: address,
      spec_url: `${address}/spec`,
      health_url: `${address}/health`,
      cost_model: { type: 'free', rate_usd: 0 },
      tags: [],
    };
    expect((await api.call('/v1/capabilities', { body: instance })).status).toBe(201);
    await api.call('/v1/capabilities/told', { method: 'DELETE', body: { endpoint: address, generation: 1 } });
    expect(await actsOn('told')).toEqual([
      { action: 'instance.deregistered', actor, data: { endpoint: address } },
    ]);
  });

  test('holds every change of a schedule', async () => {
    const body = { name: 'nightly', pipeline: 'told', version: '1', cron: '0 3 * * *' };
    const [status, { schedule_id }] = await readJson<{ schedule_id: string }>(
      api.call('/v1/schedules', { body }),
    );
    expect(status).toBe(201);
    const path = `/v1/schedules/${schedule_id}`;
    await api.call(path, { method: 'PUT', body: { ...body, cron: '0 4 * * *' } });
    await api.call(`${path}/pause`, { method: 'POST' });
    await api.call(`${path}/resume`, { method: 'POST' });
    await api.call(path, { method: 'DELETE' });
    const acts = await actsOn(schedule_id);
    expect(acts.map(({ action }) => action)).toEqual([
      'schedule.created',
      'schedule.replaced',
      'schedule.paused',
      'schedule.resumed',
      'schedule.deleted',
    ]);
    expect(new Set(acts.map(({ actor }) => actor))).toEqual(new Set([idOf(api.apiKey)]));
  });
});
