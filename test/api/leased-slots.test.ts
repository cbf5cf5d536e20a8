import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.ts';
import { aLimitedProject, execOn, registerInstance } from '../support/direct-calls.ts';
import { answer, type Instance } from '../support/fleet.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
  await api.db.raw(`create table inserted (capability text, state text);
    create function note_insert() returns trigger language plpgsql as $$
    begin
      insert into inserted values (new.capability, new.state);
      return null;
    end $$;
    create trigger note_insert after insert on attempt for each row execute function note_insert()`);
});
afterAll(() => api.close());

/** Attempts by the state in which they were written first: `dispatched` is a claim, or an open call. */
async function countInserted(capability: string): Promise<Record<string, number>> {
  const { rows } = await api.db.raw<{ rows: { state: string; n: number }[] }>(
    'select state, count(*)::int as n from inserted where capability = ? group by 1',
    [capability],
  );
  return Object.fromEntries(rows.map(({ state, n }) => [state, n]));
}

/** As many as the instance has got: a call on a leased slot is written behind its answer. */
function allRecorded(
  instance: Instance,
  capability: string,
): Promise<{ settled: number; dispatched: number }> {
  return waitFor('all to be recorded', async () => {
    const { settled = 0, dispatched = 0 } = await countInserted(capability);
    return settled + dispatched === instance.execs.length ? { settled, dispatched } : undefined;
  });
}

async function leasedSlots({ endpoint }: Instance): Promise<number> {
  const row = await api
    .db('slot_lease')
    .join('instance', 'instance.instance_id', 'slot_lease.instance_id')
    .where({ endpoint })
    .first('slots');
  return row?.slots ?? 0;
}

async function callInTurn(capability: string, times: number, headers: Record<string, string> = {}) {
  const answers = [];
  for (let n = 0; n < times; n++) {
    answers.push(await execOn(api, capability, { body: { input: { n } }, headers }));
  }
  return answers;
}

/** Calls until the router has leased slots. */
function lease(instance: Instance, capability: string): Promise<number> {
  return waitFor('slots to be leased', async () => {
    await callInTurn(capability, 4);
    return (await leasedSlots(instance)) || undefined;
  });
}

const price = { type: 'per_call', rate_usd: 0.01 } as const;

describe('calls one after the other', () => {
  test('use leased slots: no claim, and a record of each behind its answer', async () => {
    const instance = await registerInstance(api, { name: 'stream', max_concurrency: 64 });
    await lease(instance, 'stream');
    // On a busy machine some calls are open for so long that they take a slot of their own.
    const decisions = await waitFor('most of thirty calls to use leased slots', async () => {
      const [begun, before] = [instance.execs.length, await countInserted('stream')];
      const answers = await callInTurn('stream', 30);
      expect(answers.map(({ body }) => body.output)).toEqual(answers.map((_, n) => ({ n })));
      const keys = instance.execs.slice(begun).map((exec) => exec.headers['idempotency-key']);
      expect(new Set(keys).size).toBe(30);
      const { settled } = await allRecorded(instance, 'stream');
      return settled - (before.settled ?? 0) > 24
        ? answers.map(({ body }) => body.routing?.decision_id ?? '')
        : undefined;
    });
    for (const id of decisions.slice(-5)) {
      const stored = await api.call(`/v1/decisions/${id}`);
      expect(await stored.json()).toMatchObject({
        chosen: instance.endpoint,
        settled_usd: 0,
        replay: { same: true },
      });
    }
    await waitFor('the slots to be given back', async () => (await leasedSlots(instance)) === 0);
    await instance.stop();
  });

  test('feed the speed of the instance', async () => {
    const instance = await registerInstance(api, { name: 'speed', max_concurrency: 64 });
    await lease(instance, 'speed');
    await callInTurn('speed', 12);
    await waitFor('its speed to be known', async () => {
      const row = await api.db('instance').where({ endpoint: instance.endpoint }).first();
      return row.duration_ms !== null && row.success_count > 10;
    });
    await instance.stop();
  });

  test('are claimed one by one on an instance of seven slots', async () => {
    const instance = await registerInstance(api, { name: 'narrow', max_concurrency: 7 });
    await callInTurn('narrow', 15);
    expect(await countInserted('narrow')).toEqual({ dispatched: 15 });
    await instance.stop();
  });

  test('spend a limit to the last cent', async () => {
    const instance = await registerInstance(api, { name: 'scarce', cost_model: price, max_concurrency: 64 });
    const { headers } = await aLimitedProject(api, 0.09);
    const answers = await callInTurn('scarce', 10, headers);
    expect(answers.map(({ status }) => status)).toEqual([...Array(9).fill(200), 402]);
    expect(await countInserted('scarce')).toEqual({ dispatched: 9 });
    await instance.stop();
  });

  test('go elsewhere when the instance of the leased slots is gone', async () => {
    const [first, second] = [
      await registerInstance(api, { name: 'moved', max_concurrency: 64 }),
      await registerInstance(api, { name: 'moved', cost_model: price, max_concurrency: 64 }),
    ];
    await lease(first, 'moved');
    await first.stop();
    await api.db('instance').where({ endpoint: first.endpoint }).update({ state: 'deregistered' });
    await waitFor('the router to know it', async () => {
      const { body } = await execOn(api, 'moved', { body: { input: {} } });
      return body.routing?.chosen === second.endpoint;
    });
    await waitFor('the slots to be given back', async () => (await leasedSlots(first)) === 0);
    const answers = await callInTurn('moved', 5);
    expect(answers.map(({ body }) => body.routing?.chosen)).toEqual(Array(5).fill(second.endpoint));
    await second.stop();
  });

  test('with a key are claimed, and their answers are stored', async () => {
    const instance = await registerInstance(api, { name: 'keyed', max_concurrency: 64 });
    await lease(instance, 'keyed');
    const { dispatched } = await allRecorded(instance, 'keyed');
    for (let n = 0; n < 4; n++) {
      await execOn(api, 'keyed', { body: { input: { n } }, headers: { 'idempotency-key': `key-${n}` } });
    }
    expect((await countInserted('keyed')).dispatched).toBe(dispatched + 4);
    await instance.stop();
  });
});

test('a call that stays open is recorded while it is, and its slot is its own', async () => {
  const instance = await registerInstance(api, { name: 'long', max_concurrency: 64 });
  await lease(instance, 'long');
  const held: ServerResponse[] = [];
  instance.handle = (_, response) => {
    held.push(response);
  };
  const open = () => api.db('attempt').where({ capability: 'long', state: 'dispatched' });
  const call = execOn(api, 'long', { body: { input: {} } });
  const row = await waitFor('the call to be recorded as open', async () => {
    const [first, ...others] = await open();
    return held.length > 0 && others.length === 0 ? first : undefined;
  });
  expect(row).toMatchObject({ number: 1, finished_at: null, endpoint: instance.endpoint });
  await waitFor('the unused slots to be given back', async () => (await leasedSlots(instance)) === 0);
  await waitFor('it alone to be in flight', async () => {
    const shown = await api.call('/v1/capabilities/long');
    return (await shown.text()).includes('"in_flight":1');
  });
  for (const response of held) answer(response, 200, { ok: true, output: {} });
  expect((await call).status).toBe(200);
  await waitFor('its end', async () => (await open()).length === 0);
  expect(await api.db('attempt').where({ attempt_id: row.attempt_id }).first()).toMatchObject({
    state: 'settled',
  });
  await instance.stop();
});

test('an instance that fails a call loses its lease, and each failure is recorded before the answer', async () => {
  const instance = await registerInstance(api, { name: 'broken', max_concurrency: 64 });
  await lease(instance, 'broken');
  instance.handle = (_, response) => answer(response, 500, { error: 'out of order' });
  const { status } = await execOn(api, 'broken', { body: { input: {} } });
  expect(status).toBeGreaterThanOrEqual(500);
  const [row] = await api.db('attempt').where({ capability: 'broken', has_failed: true });
  expect(row).toMatchObject({ state: 'settled', number: 1 });
  await waitFor('the slots to be given back', async () => (await leasedSlots(instance)) === 0);
  await instance.stop();
});
