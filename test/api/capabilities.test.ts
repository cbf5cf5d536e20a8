import type {
  CapabilitySummary,
  DeregisterAnswer,
  HeartbeatAnswer,
  Instance,
} from '@capstan/core/contracts/capability';
import type { Validation } from '@capstan/core/contracts/pipeline-answers';
import type { Problem } from '@capstan/core/contracts/problem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

/** Nothing listens there. */
const endpoint = 'http://127.0.0.1:9';

function registration(over: object = {}) {
  return {
    name: 'concat',
    version: '1.0.0',
    endpoint,
    spec_url: `${endpoint}/spec`,
    health_url: `${endpoint}/health`,
    cost_model: { type: 'free', rate_usd: 0, notes: 'local' },
    tags: ['local'],
    ...over,
  };
}

describe('a registration', () => {
  test('answers 201, then 200, then a new generation when it changed', async () => {
    const [first, instance] = await readJson<Instance>(
      api.call('/v1/capabilities', { body: registration() }),
    );
    const [second] = await readJson<Instance>(
      api.call('/v1/capabilities', { body: registration({ unknown_field: 1 }) }),
    );
    const [third, changed] = await readJson<Instance>(
      api.call('/v1/capabilities', { body: registration({ version: '1.1.0' }) }),
    );
    expect([first, second, third]).toEqual([201, 200, 200]);
    expect(changed.generation).toBe(instance.generation + 1);
    expect(instance).toMatchObject({ ...registration(), state: 'up' });
  });

  test.each([
    [{ cost_model: { type: 'free', rate_usd: 1 } }, '/cost_model/rate_usd'],
    [{ endpoint: 'ftp://x' }, '/endpoint'],
    [{ tags: 'local' }, '/tags'],
    [{ settle: 'later' }, '/settle'],
    [{ warm_up: { input: 1 } }, '/warm_up/input'],
    [{ warm_up: { input: {}, timeout_s: 0 } }, '/warm_up/timeout_s'],
    [{ warm_up: { input: {} }, cost_model: { type: 'per_call', rate_usd: 0.1 } }, '/warm_up'],
    [{ cost_model: { type: 'per_call' } }, '/cost_model/rate_usd'],
    [{ cost_model: { type: 'per_second', rate_usd: -0.001 } }, '/cost_model/rate_usd'],
    [{ cost_model: { type: 'per_second', rate_usd: 10_000.01 } }, '/cost_model/rate_usd'],
    [{ cost_model: { type: 'per_second', rate_usd: '1' } }, '/cost_model/rate_usd'],
    [{ cost_model: { type: 'per_second', rate_usd: null } }, '/cost_model/rate_usd'],
    [{ cost_model: { type: 'monthly', rate_usd: 1 } }, '/cost_model/type'],
    [{ cost_model: { type: 'per_second', rate_usd: 1, worst_case: 5 } }, '/cost_model/worst_case'],
    [{ cost_model: { type: 'per_second', rate_usd: 1, worst_case: '5' } }, '/cost_model/worst_case'],
    [
      { cost_model: { type: 'per_second', rate_usd: 1, worst_case: '{{ job.n }}' } },
      '/cost_model/worst_case',
    ],
    [
      { cost_model: { type: 'per_second', rate_usd: 1, expected: '{{ input.n -1 }}' } },
      '/cost_model/expected',
    ],
    [
      { cost_model: { type: 'per_call', rate_usd: 1, worst_case: '{{ input.n }}' } },
      '/cost_model/worst_case',
    ],
  ])('with a bad field is refused: %j', async (over, pointer) => {
    const [status, problem] = await readJson(api.call('/v1/capabilities', { body: registration(over) }));
    expect([status, problem.errors?.[0]?.pointer]).toEqual([422, pointer]);
  });

  test.each([
    ['NaN', 400, 'malformed_json'],
    ['Infinity', 400, 'malformed_json'],
    ['1e999', 422, 'request_invalid'],
    ['-1e999', 422, 'request_invalid'],
  ])('with the rate %s is refused', async (rate, status, code) => {
    const paid = registration({ name: 'absurd', cost_model: { type: 'per_call', rate_usd: 'RATE' } });
    const body = JSON.stringify(paid).replace('"RATE"', rate);
    const headers = { 'content-type': 'application/json' };
    const [seen, problem] = await readJson(api.call('/v1/capabilities', { body, method: 'POST', headers }));
    expect([seen, problem.code]).toEqual([status, code]);
    expect((await api.call('/v1/capabilities/absurd')).status).toBe(404);
  });

  test.each([
    ['POST', '/heartbeat'],
    ['DELETE', ''],
  ])('is not touched by a %s whose name is not the path’s', async (method, path) => {
    await api.call('/v1/capabilities', { body: registration({ name: 'named' }) });
    const call = (name: unknown) =>
      api.call(`/v1/capabilities/named${path}`, { method, body: { endpoint, name } });
    for (const name of ['other', 5]) {
      const [status, problem] = await readJson(call(name));
      expect([status, problem.code, problem.errors?.[0]?.pointer]).toEqual([422, 'request_invalid', '/name']);
    }
    expect((await call('named')).status).toBe(200);
  });

  test('is listed, shown, kept alive and taken back', async () => {
    const body = registration({ name: 'kept' });
    await api.call('/v1/capabilities', { body });
    const [, list] = await readJson<{ items: CapabilitySummary[] }>(api.call('/v1/capabilities?tag=local'));
    expect(list.items.map(({ name }) => name)).toContain('kept');
    expect((await api.call('/v1/capabilities/kept')).status).toBe(200);
    const [beat, answer] = await readJson<HeartbeatAnswer>(
      api.call('/v1/capabilities/kept/heartbeat', { body: { endpoint } }),
    );
    expect([beat, answer.heartbeat_interval_s]).toEqual([200, 60]);
    const remove = () => api.call('/v1/capabilities/kept', { method: 'DELETE', body: { endpoint } });
    const [gone, removed] = await readJson<DeregisterAnswer>(remove());
    expect([gone, removed]).toEqual([200, { state: 'deregistered', stale: false }]);
    expect((await remove()).status).toBe(200);
  });

  test('makes its name known to the check of definitions', async () => {
    await api.call('/v1/capabilities', { body: registration({ name: 'known' }) });
    const body = { pipeline: 'p', version: '1', steps: [{ id: 'a', capability: 'knwon' }] };
    const [, { findings }] = await readJson<Validation>(api.call('/v1/pipelines/validate', { body }));
    expect(findings).toMatchObject([{ code: 'capability_unknown', suggestion: 'did you mean "known"?' }]);
  });
});

describe('a drain', () => {
  const act = (path: string, body: object, headers = {}) =>
    readJson<Instance & Problem>(api.call(`/v1/capabilities/drained${path}`, { body, headers }));

  test('is shown with person and reason, survives a registration, and ends', async () => {
    const body = registration({ name: 'drained' });
    await api.call('/v1/capabilities', { body });
    const [status, instance] = await act('/drain', { endpoint, reason: 'new driver' });
    expect([status, instance.state, instance.drain]).toMatchObject([
      200,
      'draining',
      { reason: 'new driver' },
    ]);
    await api.call('/v1/capabilities', { body });
    const [, list] = await readJson<{ items: CapabilitySummary[] }>(
      api.call('/v1/capabilities?state=draining'),
    );
    expect(list.items.map(({ name }) => name)).toEqual(['drained']);
    const [, undrained] = await act('/undrain', { endpoint });
    expect([['up', 'suspect'].includes(undrained.state), undrained.drain]).toEqual([true, undefined]);
    expect((await act('/warm', { endpoint }))[0]).toBe(409);
  });

  test('needs the right to register the name, in the project that did', async () => {
    await api.call('/v1/capabilities', { body: registration({ name: 'drained' }) });
    const other = await api.createProject('other');
    const unnamed = await api.createKey({ scopes: ['capability:register:other'] });
    for (const [key, refusal] of [
      [unnamed, [403, 'forbidden']],
      [other.apiKey, [404, 'not_found']],
    ] as const) {
      const [status, problem] = await act('/drain', { endpoint }, { authorization: `Bearer ${key}` });
      expect([status, problem.code]).toEqual(refusal);
    }
  });
});
