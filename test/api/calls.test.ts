import type { BudgetList } from '@capstan/core/contracts/money';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import { aLimitedProject, type ExecOptions, execOn, registerInstance } from '../support/direct-calls.ts';
import { answer, type Handler, type Instance } from '../support/fleet.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
const fleet: Instance[] = [];
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(async () => {
  await Promise.all(fleet.map((instance) => instance.stop()));
  await api.close();
});

function exec(name: string, options?: ExecOptions) {
  return execOn(api, name, options);
}

async function register(options: Parameters<typeof registerInstance>[1]): Promise<Instance> {
  const instance = await registerInstance(api, options);
  fleet.push(instance);
  return instance;
}

function perCall(rate_usd: number) {
  return { cost_model: { type: 'per_call', rate_usd }, tags: ['hosted'] };
}

const fails: Handler = (_, response) => answer(response, 500, { error: 'broken' });
const hangs: Handler = () => undefined;

/** Its calls are answered when the test asks for it. */
function holds(instance: Instance): () => void {
  let reply = (): void => undefined;
  instance.handle = (_, response) => {
    reply = () => answer(response, 200, { ok: true, output: {} });
  };
  return () => reply();
}

function lastAttempt(capability: string) {
  return api
    .db('attempt')
    .join('attempt_choice', 'attempt_choice.attempt_id', 'attempt.attempt_id')
    .where({ capability })
    .orderBy('started_at', 'desc')
    .first('*');
}

describe('a direct call', () => {
  test('answers the output and why the instance was chosen, and stores nothing but its attempt', async () => {
    const instance = await register({ name: 'echo' });
    const { status, body } = await exec('echo', { body: { input: { n: 1 } } });
    expect([status, body]).toMatchObject([
      200,
      { ok: true, output: { n: 1 }, routing: { chosen: instance.endpoint, reserved_usd: 0, settled_usd: 0 } },
    ]);
    expect(instance.execs[0]?.headers['idempotency-key']).toMatch(/^call_[0-9a-f-]{36}$/);
    const attempts = (): Promise<{ state: string }[]> => api.db('attempt').where({ capability: 'echo' });
    await waitFor('its end to be written', async () => (await attempts())[0]?.state === 'settled');
    expect(await attempts()).toMatchObject([{ run_id: null, project_id: api.projectId }]);
    expect(await api.db('idempotency').select('*')).toEqual([]);
  });

  test('goes to another instance when one refuses connections, unnoticed by its caller', async () => {
    const [gone, stays] = [await register({ name: 'pair' }), await register({ name: 'pair' })];
    await waitFor('both to have worked', async () => {
      await exec('pair');
      return gone.execs.length > 0 && stays.execs.length > 0;
    });
    await gone.stop();
    const ends = await Promise.all(Array.from({ length: 4 }, () => exec('pair')));
    expect(ends.map(({ status, body }) => [status, body.routing?.chosen])).toEqual(
      ends.map(() => [200, stays.endpoint]),
    );
  });

  test('tries at most three instances, then returns the last error, its decision and Retry-After', async () => {
    const broken = await Promise.all([1, 2, 3, 4].map(() => register({ name: 'broken' })));
    for (const instance of broken) instance.handle = fails;
    const { status, headers, body } = await exec('broken');
    expect([status, body.code, body.detail]).toEqual([502, 'capability_failed', 'HTTP 500: broken']);
    expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(broken.flatMap(({ execs }) => execs)).toHaveLength(3);
    const last = await lastAttempt('broken');
    expect(body.decision).toEqual({ ...last.decision, settled_usd: 0 });
  });

  test('is refused before it is sent when no instance accepts its input', async () => {
    const input = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
    const strict = await register({ name: 'strict', input });
    const { status, body } = await exec('strict', { body: { input: { n: 'x' } } });
    expect([status, body.code, body.errors]).toEqual([
      422,
      'input_invalid',
      [{ pointer: '/input/n', code: 'schema_mismatch', message: 'must be integer, got "x"' }],
    ]);
    expect(body.decision).toMatchObject({ chosen: null, candidates: [{ verdict: 'input_invalid' }] });
    expect(strict.execs).toEqual([]);
  });

  test('names five faults of its input in a sentence, and lists all', async () => {
    const required = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
    await register({ name: 'demanding', input: { type: 'object', required } });
    const { body } = await exec('demanding', { body: { input: {} } });
    expect(body.detail).toMatch(/: \/a is required; .*; \/e is required; and 2 more$/);
    expect(body.errors).toHaveLength(7);
  });

  test.each<[string, Handler, object, number, string, boolean]>([
    ['refuses', (_, r) => answer(r, 422, { ok: false, error: 'no' }), {}, 422, 'input_rejected', false],
    ['lies', (_, r) => answer(r, 200, { ok: true, output: {} }), {}, 502, 'output_invalid', false],
    ['babbles', (_, r) => void r.end('<html>'), {}, 502, 'response_invalid', true],
    ['hangs', hangs, { timeout_ms: 1_000 }, 504, 'attempt_timeout', true],
    ['breaks', (_, r) => void r.destroy(), {}, 502, 'contact_lost', true],
    ['is-busy', (_, r) => answer(r, 503, {}), {}, 503, 'overloaded', true],
  ])(
    'to an instance that %s ends with the status and code of the table',
    async (name, handle, extra, status, code, retries) => {
      const output = { type: 'object', required: ['path'] };
      (await register({ name, output })).handle = handle;
      const seen = await exec(name, { body: { input: {}, ...extra } });
      expect([seen.status, seen.body.code]).toEqual([status, code]);
      expect(seen.headers.has('retry-after')).toBe(retries);
      expect(seen.body.decision?.settled_usd).toBe(0);
    },
  );

  test('of a name that was never registered is 404 with the nearest name', async () => {
    await register({ name: 'thumbnail' });
    const { status, body } = await exec('thumbnial');
    const suggestion = 'did you mean "thumbnail"?';
    expect([status, body.code, body.errors]).toMatchObject([
      404,
      'not_found',
      [{ pointer: '/path/name', suggestion }],
    ]);
  });

  test('of a name without a live instance is 503 with the decision and when to come again', async () => {
    const { endpoint } = await register({ name: 'left' });
    await api.call('/v1/capabilities/left', { method: 'DELETE', body: { endpoint } });
    const { status, headers, body } = await exec('left');
    expect([status, body.code, body.decision?.chosen]).toEqual([503, 'no_instance', null]);
    expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  });

  test('waits for a slot, and fails as overloaded when all stay full', async () => {
    const single = await register({ name: 'single', max_concurrency: 1 });
    const reply = holds(single);
    const first = exec('single');
    await waitFor('the slot to be taken', () => single.execs.length === 1);
    const { status, body } = await exec('single', { body: { input: {}, timeout_ms: 1_000 } });
    expect([status, body.code, body.decision?.candidates[0]?.verdict]).toEqual([503, 'overloaded', 'wait']);
    reply();
    expect((await first).status).toBe(200);
    expect(single.execs).toHaveLength(1);
  });

  test('waits for the host that its instance shares, and begins when a call of another capability has ended', async () => {
    const names = ['host-image', 'host-voice'];
    const [image, voice] = (await Promise.all(names.map((name) => register({ name })))) as [
      Instance,
      Instance,
    ];
    for (const [at, { endpoint }] of [image, voice].entries()) {
      const urls = { endpoint, spec_url: `${endpoint}/spec`, health_url: `${endpoint}/health` };
      const facts = { name: names[at], version: '1.0.0', tags: ['local'], ...urls };
      const host = { name: 'gpu-1', slots: 1 };
      const cost_model = { type: 'free', rate_usd: 0 };
      const body = { ...facts, cost_model, host, max_concurrency: 4 };
      expect((await api.call('/v1/capabilities', { body })).status).toBe(200);
    }
    await api.refreshFleet();
    const reply = holds(image);
    const first = exec('host-image');
    await waitFor('the slot of the host to be taken', () => image.execs.length === 1);
    const { status, body } = await exec('host-voice', { body: { input: {}, timeout_ms: 1_000 } });
    expect([status, body.code, body.detail]).toEqual([
      503,
      'overloaded',
      expect.stringMatching(/^the only possible instance of host-voice is full; .*: its host gpu-1 is full$/),
    ]);
    const second = exec('host-voice');
    reply();
    expect([(await first).status, (await second).status]).toEqual([200, 200]);
    const hosts = await readJson<{ items: { held: number }[] }>(api.call('/v1/hosts'));
    expect(hosts[1].items).toMatchObject([{ name: 'gpu-1', slots: 1, capabilities: names, warnings: [] }]);
  });

  test('many that waited without a result receive 503, and their retries are spread over time', async () => {
    const single = await register({ name: 'crowded', max_concurrency: 1 });
    const reply = holds(single);
    const first = exec('crowded');
    await waitFor('the slot to be taken', () => single.execs.length === 1);
    const body = { input: {}, timeout_ms: 1_500 };
    const ends = await Promise.all(Array.from({ length: 12 }, () => exec('crowded', { body })));
    expect(ends.map(({ status, body: problem }) => [status, problem.code])).toEqual(
      ends.map(() => [503, 'overloaded']),
    );
    const details = ends.map(({ body: problem }) => problem.detail);
    expect(details).toEqual(
      details.map(() => expect.stringMatching(/^the only possible instance of crowded is full; /)),
    );
    expect(details.filter((detail) => /; 11 other calls wait in line$/.test(detail ?? ''))).toHaveLength(1);
    const pauses = ends.map(({ headers }) => Number(headers.get('retry-after')));
    expect(new Set(pauses).size).toBeGreaterThan(6);
    expect(Math.max(...pauses)).toBeGreaterThan(6 * Math.min(...pauses));
    reply();
    expect((await first).status).toBe(200);
  });

  test('ends at the instance when the client goes away, and is settled', async () => {
    const slow = await register({ name: 'slow', ...perCall(0.25) });
    slow.handle = hangs;
    const client = new AbortController();
    const asked = fetch(`${api.url}/v1/capabilities/slow/exec`, {
      method: 'POST',
      body: '{"input":{}}',
      signal: client.signal,
      headers: { authorization: `Bearer ${api.apiKey}`, 'content-type': 'application/json' },
    });
    await waitFor('the call to arrive', () => slow.execs.length === 1);
    client.abort();
    await expect(asked).rejects.toThrow();
    await waitFor('the connection to close', () => slow.execs[0]?.closed);
    await waitFor('the settlement', async () => (await lastAttempt('slow')).state === 'lost');
    expect(await lastAttempt('slow')).toMatchObject({ settled_nano: '250000000', certainty: 'estimated' });
    expect(await api.db('budget').where('reserved_nano', '>', 0)).toEqual([]);
  });

  test.each([
    [{}, '/input'],
    [{ input: [] }, '/input'],
    [{ input: {}, timeout_ms: 86_400_001 }, '/timeout_ms'],
    [{ input: {}, budget_ceiling_usd: -1 }, '/budget_ceiling_usd'],
    [{ input: {}, priority: 'urgent' }, '/priority'],
    [{ input: {}, prority: 'batch' }, '/prority'],
  ])('with the body %j is refused', async (body, pointer) => {
    const { status, body: problem } = await exec('echo', { body });
    expect([status, problem.errors?.[0]?.pointer]).toEqual([422, pointer]);
  });

  test('needs capability:call', async () => {
    const key = await api.createKey({ scopes: ['capability:read'] });
    const { status } = await exec('echo', { headers: { authorization: `Bearer ${key}` } });
    expect(status).toBe(403);
  });
});

describe('money', () => {
  test('a ceiling below every price is 402 with the least that would do', async () => {
    await register({ name: 'dear', ...perCall(0.5) });
    const { status, body } = await exec('dear', { body: { input: {}, budget_ceiling_usd: 0.1 } });
    expect([status, body]).toMatchObject([
      402,
      {
        code: 'ceiling_too_low',
        scope: 'call',
        limit_usd: 0.1,
        spent_usd: 0,
        reserved_usd: 0,
        resets_at: null,
        minimum_usd: 0.5,
        decision: { candidates: [{ verdict: 'over_ceiling' }] },
      },
    ]);
  });

  test('an exhausted budget refuses paid calls, with its figures, and allows free ones', async () => {
    const { headers } = await aLimitedProject(api, 0.5);
    await register({ name: 'paid', ...perCall(0.3) });
    expect((await exec('paid', { headers })).body.routing?.settled_usd).toBe(0.3);
    const { status, body } = await exec('paid', { headers });
    expect([status, body]).toMatchObject([
      402,
      {
        code: 'budget_exhausted',
        scope: 'project',
        limit_usd: 0.5,
        spent_usd: 0.3,
        reserved_usd: 0,
        minimum_usd: 0.3,
        decision: { candidates: [{ verdict: 'over_budget' }] },
      },
    ]);
    expect(new Date(String(body.resets_at)).getTime()).toBeGreaterThan(Date.now());

    const free = await register({ name: 'paid' });
    const served = await exec('paid', { headers });
    expect([served.status, served.body.routing?.chosen]).toEqual([200, free.endpoint]);
  });

  test('of the budget of all projects a project learns that it has no room, and no figure', async () => {
    const far = await aLimitedProject(api, 0);
    await register({ name: 'shared', ...perCall(0.7) });
    const ask = () => exec('shared', { headers: far.headers });
    expect((await ask()).status).toBe(200);
    const limit = (daily_limit_usd: number) =>
      api.call('/v1/budgets', { method: 'PUT', body: { scope: 'global', daily_limit_usd } });
    const [, { items }] = await readJson<z.infer<typeof BudgetList>>(api.call('/v1/budgets'));
    const spent = items.find(({ scope }) => scope === 'global')?.spent_usd ?? 0;
    // Its last digits are in no other number of an answer; it leaves less than 0.7.
    const daily = Math.floor(spent * 10) / 10 + 0.123_456_789;
    await limit(daily);
    expect(await (await api.call('/v1/budgets')).text()).toContain('456789');
    const route = { capability: 'shared' };
    const definition = { pipeline: 'p', version: '1', steps: [{ id: 'a', capability: 'shared' }] };
    const refused = await ask();
    const asked = [
      JSON.stringify(refused.body),
      await (await api.call('/v1/route', { body: route, headers: far.headers })).text(),
      await (await api.call('/v1/plan', { body: { definition }, headers: far.headers })).text(),
    ];
    const free = await register({ name: 'shared' });
    const served = await ask();
    await limit(0);
    expect([refused.status, refused.body]).toMatchObject([
      402,
      { code: 'budget_exhausted', scope: 'global', minimum_usd: 0.7, resets_at: expect.any(String) },
    ]);
    expect(served.body.routing?.chosen).toBe(free.endpoint);
    const kept = `/v1/decisions/${served.body.routing?.decision_id}`;
    asked.push(await (await api.call(kept, { headers: far.headers })).text());
    for (const text of asked) {
      const figures = text.replace('"limit_usd":2.8', ''); // the most that the run may cost
      expect(figures).not.toMatch(/"(limit|spent)_usd"|"headroom_usd":0/);
      for (const figure of ['456789', (daily - spent).toFixed(9)]) expect(text).not.toContain(figure);
    }
    expect(asked[1]).toContain('the day of all projects has less left');
    expect(asked[2]).toContain('the day of all projects');
  });

  test('a price per second is reserved for as long as the call may take', async () => {
    const cost_model = { type: 'per_second', rate_usd: 0.5 };
    await register({ name: 'metered', cost_model, tags: ['hosted'] });
    const { body } = await exec('metered', { body: { input: {}, timeout_ms: 8_000 } });
    expect(body.routing?.reserved_usd).toBe(4);
    expect((await lastAttempt('metered'))?.reserved_nano).toBe('4000000000');
  });

  test('a budget that is reserved by running calls is 429 with Retry-After', async () => {
    const { headers } = await aLimitedProject(api, 0.5);
    const held = await register({ name: 'held', ...perCall(0.3) });
    const reply = holds(held);
    const first = exec('held', { headers });
    await waitFor('the call to arrive', () => held.execs.length === 1);
    const refused = await exec('held', { headers });
    expect([refused.status, refused.body]).toMatchObject([
      429,
      { code: 'budget_reserved', limit_usd: 0.5, spent_usd: 0, reserved_usd: 0.3, minimum_usd: 0.3 },
    ]);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    reply();
    expect((await first).status).toBe(200);
  });
});
