/** Outside events over HTTP: who may send them, what is refused, and what their senders see. */
import type { EventReceipt } from '@capstan/core/contracts/outside-event';
import type { Problem } from '@capstan/core/contracts/problem';
import type { StepDetail } from '@capstan/core/contracts/run-step';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const send = (body: unknown, name = 'payment.settled') =>
  readJson<EventReceipt & Problem>(api.call(`/v1/events/${name}`, { method: 'POST', body }));

test('an event that no step waits for is kept for a day, once for each id', async () => {
  const body = { key: 'order-7', id: 'e-1', payload: { sum: 12.5 } };
  const [status, receipt] = await send(body);
  expect([status, receipt]).toEqual([
    202,
    {
      event_id: expect.stringMatching(/^evt_/),
      name: 'payment.settled',
      key: 'order-7',
      waiting: 0,
      refused_by: [],
      repeated: false,
      kept_until: expect.any(String),
    },
  ]);
  const left = Date.parse(receipt.kept_until) - Date.now();
  expect(Math.round(left / 3_600_000)).toBe(24);
  expect(await send(body)).toEqual([202, { ...receipt, repeated: true }]);
  expect((await send({}))[1]).toMatchObject({ key: null, waiting: 0 });
});

test('a payload that the waiting step refuses is answered with pointers', async () => {
  const schema = { type: 'object', properties: { sum: { type: 'number' } } };
  const definition = { pipeline: 'p', version: '1', steps: [{ id: 'a', event: { name: 'sum', schema } }] };
  const [, run] = await readJson<{ run_id: string }>(api.call('/v1/runs', { body: { definition, job: {} } }));
  await api.db('step').insert({
    run_id: run.run_id,
    step_id: 'a',
    state: 'waiting',
    awaiting: 'event',
    awaited_event: `${api.projectId}/sum`,
    awaited_key: '',
    wait_since: '2026-01-01T00:00:00Z',
    wait_until: api.db.raw(`clock_timestamp() + interval '1 hour'`),
  });
  const [, step] = await readJson<StepDetail>(api.call(`/v1/runs/${run.run_id}/steps/a`));
  expect(step).toMatchObject({
    event: 'sum',
    open_wait: { since: '2026-01-01T00:00:00.000Z', until: expect.any(String), event_key: null },
  });
  const [status, problem] = await send({ payload: { sum: 'much' } }, 'sum');
  expect([status, problem.code]).toEqual([422, 'request_invalid']);
  expect(problem.errors).toEqual([
    { pointer: '/payload/sum', code: 'schema_mismatch', message: expect.stringContaining('must be number') },
  ]);
  expect((await send({ payload: { sum: 1 } }, 'sum'))[1]).toMatchObject({ waiting: 1 });
});

test.each([
  [{ key: '' }, 'paid', 422, '/key'],
  [{ key: 7 }, 'paid', 422, '/key'],
  [{ payload: 1, more: 2 }, 'paid', 422, '/more'],
  [{}, 'not%20paid', 422, '/path/name'],
] as const)('%j to %s is refused', async (body, name, expected, pointer) => {
  const [status, problem] = await send(body, name);
  expect([status, problem.errors?.[0]?.pointer]).toEqual([expected, pointer]);
});

test('a payload is bounded as a job is, and holds no NUL', async () => {
  expect((await send({ payload: 'x'.repeat(20_000_000) }))[0]).toBe(413);
  expect((await send({ payload: 'a\0b' }))[0]).toBe(400);
});

test('the scope is run:write', async () => {
  const keyed = async (scope: string) => {
    const body = { name: scope, projects: [api.projectId], scopes: [scope] };
    const [, { key }] = await readJson<{ key: string }>(api.call('/v1/keys', { body }));
    const headers = { authorization: `Bearer ${key}` };
    return (await api.call('/v1/events/scoped', { body: {}, headers })).status;
  };
  expect([await keyed('run:read'), await keyed('run:write')]).toEqual([403, 202]);
});
