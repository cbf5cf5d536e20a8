import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { trimKeptAnswers } from '../../src/db/idempotency.ts';
import { toOpaqueKey } from '../../src/use-cases/routing/call.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { execOn, registerInstance } from '../support/direct-calls.ts';
import { answer, echo, type Handler, type Instance } from '../support/fleet.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
let instance: Instance;
let other: Instance;
beforeAll(async () => {
  api = await startTestApi();
  instance = await registerInstance(api, { name: 'concat', max_concurrency: 100 });
  other = await registerInstance(api, { name: 'other' });
});
afterAll(async () => {
  await Promise.all([instance.stop(), other.stop()]);
  await api.close();
});
beforeEach(() => {
  instance.handle = echo;
  instance.execs.length = 0;
});

function exec(key: string, input: object = {}, headers: Record<string, string> = {}, name = 'concat') {
  return execOn(api, name, { body: { input }, headers: { 'idempotency-key': key, ...headers } });
}

function hasReplayed({ headers }: { headers: Headers }) {
  return headers.get('idempotent-replayed') === 'true';
}

function rowOf(key: string) {
  return api.db('idempotency').where({ key });
}

test('one key sent many times in parallel is one call, and the others receive 409 with Retry-After', async () => {
  const ends = await Promise.all(Array.from({ length: 8 }, () => exec('at-once', { n: 1 })));
  expect(instance.execs).toHaveLength(1);
  expect(ends.filter((end) => end.status === 200 && !hasReplayed(end))).toHaveLength(1);
  for (const end of ends.filter((one) => one.status !== 200)) {
    expect([end.status, end.body.code]).toEqual([409, 'idempotency_in_progress']);
    expect(end.headers.get('retry-after')).toBe('1');
  }
});

test('a repeated request is answered the same, marked as replayed', async () => {
  const first = await exec('again', { n: 1 });
  const second = await exec('again', { n: 1 });
  expect([hasReplayed(first), hasReplayed(second)]).toEqual([false, true]);
  expect([second.status, second.body]).toEqual([200, first.body]);
  expect(instance.execs.map(({ headers }) => headers['idempotency-key'])).toEqual([
    toOpaqueKey(`${api.projectId}:concat:again`),
  ]);
});

test('a key with another body is 422', async () => {
  await exec('reused', { n: 1 });
  const { status, body } = await exec('reused', { n: 2 });
  expect([status, body.code]).toEqual([422, 'idempotency_key_reuse']);
  expect(instance.execs).toHaveLength(1);
});

test('a key means another call for another capability, and in another project', async () => {
  const { apiKey } = await api.createProject('elsewhere');
  await exec('mine', { n: 1 });
  const elsewhere = await exec('mine', { n: 2 }, { authorization: `Bearer ${apiKey}` });
  const otherwise = await exec('mine', { n: 3 }, {}, 'other');
  expect([elsewhere.body.output, otherwise.body.output]).toEqual([{ n: 2 }, { n: 3 }]);
});

test('a refusal of the input is kept like a success', async () => {
  instance.handle = (_, response) => answer(response, 422, { ok: false, error: 'too short' });
  const first = await exec('refused');
  instance.handle = echo;
  const second = await exec('refused');
  expect([second.status, second.body.code, hasReplayed(second)]).toEqual([422, 'input_rejected', true]);
  expect(second.body.decision).toEqual(first.body.decision);
  expect(instance.execs).toHaveLength(1);
});

test('an answer that was removed for newer ones is neither made nor paid again', async () => {
  const first = await exec('removed', { n: 1 });
  await trimKeptAnswers(api.db, api.projectId, {
    bytes: 0,
    stated: { code: 'answer_not_kept', message: 'gone' },
  });
  const second = await exec('removed', { n: 1 });
  expect([first.status, second.status, second.body.code, second.body.detail]).toEqual([
    200,
    410,
    'answer_not_kept',
    'gone',
  ]);
  expect(hasReplayed(second)).toBe(true);
  expect(instance.execs).toHaveLength(1);
});

test.each([
  ['success', echo],
  ['refusal', (_, response) => answer(response, 422, { ok: false, error: 'too short' })],
] as [string, Handler][])('a %s is kept by the transaction that settles it', async (what, handle) => {
  instance.handle = handle;
  await exec(`kept-${what}`);
  const { rows } = await api.db.raw<{ rows: { status: number; is_together: boolean }[] }>(
    `select i.status, i.xmin = a.xmin as is_together from idempotency i join attempt a on a.key = i.project_id || ':concat:' || i.key
     where i.key = ?`,
    [`kept-${what}`],
  );
  expect(rows).toMatchObject([{ is_together: true }]);
});

test('an outcome that may change is not kept: the same key tries again, without limit', async () => {
  instance.handle = (_, response) => void response.destroy();
  for (let time = 0; time < 4; time++) expect((await exec('retried')).body.code).toBe('contact_lost');
  instance.handle = echo;
  const end = await exec('retried');
  expect([end.status, hasReplayed(end)]).toEqual([200, false]);
  expect(instance.execs.map(({ headers }) => headers['x-attempt'])).toEqual(['1', '2', '3', '4', '5']);
});

test('an answer of more than a mebibyte is kept as it is', async () => {
  const text = 'é\u0000"'.repeat(270_000);
  instance.handle = (_, response) => answer(response, 200, { ok: true, output: { text } });
  await exec('large');
  const { body, ...second } = await exec('large');
  expect([hasReplayed(second), body.output]).toEqual([true, { text }]);
});

test('a call continues when its client leaves, and the client can return for the answer', async () => {
  let finish = (): void => undefined;
  instance.handle = (exec_, response) => {
    finish = () => void echo(exec_, response);
  };
  const client = new AbortController();
  const asked = fetch(`${api.url}/v1/capabilities/concat/exec`, {
    method: 'POST',
    body: '{"input":{"n":7}}',
    signal: client.signal,
    headers: {
      authorization: `Bearer ${api.apiKey}`,
      'content-type': 'application/json',
      'idempotency-key': 'left',
    },
  });
  await waitFor('the call to arrive', () => instance.execs.length === 1);
  client.abort();
  await expect(asked).rejects.toThrow();
  expect((await exec('left', { n: 7 })).status).toBe(409);
  finish();
  const end = await waitFor('the answer', async () => {
    const seen = await exec('left', { n: 7 });
    return seen.status === 200 ? seen : undefined;
  });
  expect([end.body.output, hasReplayed(end), instance.execs.length]).toEqual([{ n: 7 }, true, 1]);
});

test('the key of a running call is renewed, so that no other request takes it over', async () => {
  let finish = (): void => undefined;
  instance.handle = (exec_, response) => {
    finish = () => void echo(exec_, response);
  };
  const first = exec('long');
  await waitFor('the call to arrive', () => instance.execs.length === 1);
  const past = new Date(Date.now() - 60_000);
  await rowOf('long').update({ created_at: past });
  expect((await exec('long')).status).toBe(409); // its attempt has a live lease
  await waitFor('the renewal', async () => (await rowOf('long').first()).created_at > past);
  finish();
  expect((await first).status).toBe(200);
});

test('the key of a process that died is taken over, and not while its attempt may be alive', async () => {
  const ours = await exec('died');
  const [{ created_at }] = await rowOf('died').update({ status: 0, answer: '"gone"' }).returning('*');
  expect((await exec('died')).status).toBe(409); // younger than ten seconds
  const past = new Date(created_at - 11_000);
  await rowOf('died').update({ created_at: past });
  const attempt = () => api.db('attempt').where({ key: `${api.projectId}:concat:died` });
  await attempt().update({ state: 'dispatched', lease_until: new Date(Date.now() + 60_000) });
  expect((await exec('died')).status).toBe(409);
  await attempt().update({ lease_until: past });
  const end = await exec('died');
  expect([end.status, hasReplayed(end), instance.execs.length]).toEqual([200, false, 2]);
  expect(end.body.routing?.decision_id).not.toBe(ours.body.routing?.decision_id);
});
