import type { KeyScope } from '@capstan/core/contracts/access';
import type { Registration } from '@capstan/core/contracts/capability';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pollInstances } from '../../../src/db/instance/instance-list.ts';
import {
  drainInstance,
  endDrains,
  requestWarmUp,
  undrainInstance,
} from '../../../src/use-cases/registry/drain.ts';
import { beginWarmUps } from '../../../src/use-cases/registry/warm-up.ts';
import { waitFor } from '../../support/wait.ts';
import { answerJson, aSpec, type FakeInstance } from './fake-instance.ts';
import { openRegistryBench, otherProject, owner, project, type RegistryBench } from './registry-bench.ts';

let bench: RegistryBench;
beforeAll(async () => {
  bench = await openRegistryBench();
});
afterAll(() => bench.close());

const anna = { ...owner, key_id: 'user:anna', scopes: new Set<KeyScope>(['capability:register']) };
const stranger = { ...anna, project_id: otherProject };
const operator = { ...stranger, key_id: 'user:op', scopes: new Set<KeyScope>(['operator']) };

async function register(changes: Partial<Registration> = {}, spec = aSpec()): Promise<FakeInstance> {
  const instance = await bench.start(spec);
  await bench.registry.register(project, instance.registration(changes));
  await bench.registry.vet((await bench.read(instance.url)).instance_id);
  return instance;
}

function asked<Body extends object>({ url }: FakeInstance, body?: Body) {
  return { name: 'concat', body: { endpoint: url, ...body } };
}

/** As the registry shows it. */
async function shown({ url }: FakeInstance) {
  const { instances } = await bench.registry.get('concat');
  return instances.find(({ endpoint }) => endpoint === url);
}

/** As the routers poll it. */
async function polled({ url }: FakeInstance) {
  const { instances } = await pollInstances(bench.db, '0');
  return instances.find(({ endpoint }) => endpoint === url)?.state;
}

describe('a drain', () => {
  it('names person and reason, and survives heartbeats, probes, registrations and a deregistration', async () => {
    const instance = await register();
    const said = { by: 'user:anna', reason: 'new driver', until: null };
    const { state, drain } = await drainInstance(bench.ctx, anna, asked(instance, { reason: 'new driver' }));
    expect([state, drain]).toEqual(['draining', { ...said, since: drain?.since }]);
    const body = { endpoint: instance.url };
    const beat = await bench.registry.heartbeat(project, 'concat', body);
    expect(beat.state).toBe('draining');
    await bench.registry.vet((await bench.read(instance.url)).instance_id);
    const again = await bench.registry.register(project, instance.registration({ tags: ['changed'] }));
    expect(again.instance).toMatchObject({ state: 'draining', drain: said });
    const { generation } = again.instance;
    await bench.registry.deregister(owner, 'concat', { ...body, generation });
    expect(await shown(instance)).toMatchObject({ state: 'deregistered', drain: said });
    await bench.registry.register(project, instance.registration());
    expect([(await shown(instance))?.state, await polled(instance)]).toEqual(['draining', 'draining']);
    const listed = await bench.registry.list({ state: 'draining', limit: 10 });
    expect(listed.items.flatMap(({ instances }) => instances.map(({ endpoint }) => endpoint))).toEqual([
      instance.url,
    ]);
    expect((await undrainInstance(bench.ctx, anna, asked(instance))).state).toBe('up');
    expect(await polled(instance)).toBe('up');
  });

  it('is repeated with another reason and end, and noted in the audit log', async () => {
    const instance = await register();
    const until = new Date(Date.now() + 3_600_000).toISOString();
    const first = await drainInstance(bench.ctx, anna, asked(instance, { reason: 'one' }));
    const second = await drainInstance(bench.ctx, operator, asked(instance, { until }));
    expect(second.drain).toEqual({ by: 'user:op', since: first.drain?.since, until });
    await undrainInstance(bench.ctx, anna, asked(instance));
    await undrainInstance(bench.ctx, anna, asked(instance));
    const rows = await bench.db('audit').whereRaw(`data ->> 'endpoint' = ?`, [instance.url]).orderBy('entry');
    expect(rows.map(({ action, actor }) => [action, actor])).toEqual([
      ['instance.drained', 'user:anna'],
      ['instance.drained', 'user:op'],
      ['instance.undrained', 'user:anna'],
    ]);
  });

  it('ends at its time', async () => {
    const [instance, other] = [await register(), await register()];
    const until = new Date(Date.now() + 3_600_000).toISOString();
    await drainInstance(bench.ctx, anna, asked(instance, { until }));
    await drainInstance(bench.ctx, anna, asked(other));
    expect(await endDrains(bench.ctx)).toBe(0);
    await bench.db('instance').where({ endpoint: instance.url }).update({ drain_until: new Date() });
    expect(await endDrains(bench.ctx)).toBe(1);
    expect([(await shown(instance))?.state, (await shown(other))?.state]).toEqual(['up', 'draining']);
    await undrainInstance(bench.ctx, anna, asked(other));
  });

  it('is refused to other projects, for unknown instances, and with an end in the past', async () => {
    const instance = await register();
    const past = { until: '2020-01-01T00:00:00.000Z' };
    const refusals = [
      () => drainInstance(bench.ctx, stranger, asked(instance)),
      () => undrainInstance(bench.ctx, stranger, asked(instance)),
      () => drainInstance(bench.ctx, anna, { name: 'other', body: { endpoint: instance.url } }),
      async () => drainInstance(bench.ctx, anna, asked(instance, past)),
    ];
    const codes = await Promise.all(refusals.map((ask) => ask().catch(({ code }) => code)));
    expect(codes).toEqual(['not_found', 'not_found', 'not_found', 'request_invalid']);
    expect((await shown(instance))?.state).toBe('up');
  });

  it('does not pass to another project that takes over the endpoint, nor does what its calls have shown', async () => {
    const instance = await register({}, aSpec({ name: 'moved' }));
    const request = { name: 'moved', body: { endpoint: instance.url } };
    await drainInstance(bench.ctx, anna, request);
    const calls = { resident: ['of-anna'], distrusted: '{"key-of-anna": 4e12}', pace: 2, success_count: 7 };
    await bench
      .db('instance')
      .where({ endpoint: instance.url })
      .update({ ...calls, overruns: 3 });
    await bench
      .db('publisher')
      .where({ name: 'moved' })
      .update({ projects: [otherProject], set_by: 'key_operator' });
    const { instance: taken } = await bench.registry.register(otherProject, instance.registration());
    expect([taken.state, taken.drain, taken.resident, taken.overruns]).toEqual([
      'up',
      ...Array(3).fill(undefined),
    ]);
    expect(await bench.read(instance.url)).toMatchObject({
      distrusted: {},
      pace: null,
      most_reported: 1,
      success_count: 0,
    });
  });
});

const warm_up = { input: { clips: ['a'] }, timeout_s: 30 };

describe('a warm-up', () => {
  it('is sent once after a registration, and until it succeeds the instance is warming', async () => {
    const instance = await register({ warm_up });
    expect([(await shown(instance))?.state, await polled(instance)]).toEqual(['warming', 'warming']);
    const bodies: string[] = [];
    const answers = [500, 200];
    instance.answer('/exec', (request, response) => {
      request.on('data', (chunk) => bodies.push(String(chunk)));
      request.on('end', () => answerJson(response, { ok: true, output: {} }, answers.shift()));
    });
    expect(await beginWarmUps(bench.ctx)).toBe(1);
    await waitFor('the failure', async () => (await bench.read(instance.url)).warm_error !== null);
    expect(await shown(instance)).toMatchObject({
      state: 'warming',
      reason: expect.stringMatching(/^its warm-up failed: HTTP 500/),
    });
    expect(await beginWarmUps(bench.ctx)).toBe(0); // it pauses
    await requestWarmUp(bench.ctx, anna, asked(instance));
    expect(await beginWarmUps(bench.ctx)).toBe(1);
    await waitFor('the success', async () => (await shown(instance))?.state === 'up');
    expect(bodies.map((text) => JSON.parse(text))).toEqual([warm_up.input, warm_up.input]);
    expect((await shown(instance))?.reason).toBeUndefined();
    expect(await bench.db('attempt').where({ endpoint: instance.url })).toEqual([]);
  });

  it('is due again after a drain and for a new process, and not during a drain', async () => {
    const instance = await register({ warm_up });
    const { instance_id } = await bench.read(instance.url);
    const makeWarm = () => bench.db('instance').where({ instance_id }).update({ warm_due_at: null });
    await makeWarm();
    await drainInstance(bench.ctx, anna, asked(instance));
    await bench.registry.register(project, instance.registration({ warm_up }));
    await bench.registry.vet(instance_id);
    expect(await beginWarmUps(bench.ctx)).toBe(0);
    await undrainInstance(bench.ctx, anna, asked(instance));
    expect((await shown(instance))?.state).toBe('warming');
    await makeWarm();
    const health = { status: 'ok', name: 'concat', version: '1.0.0', uptime_ms: 1 };
    instance.answer('/health', (_, response) => answerJson(response, health));
    await bench.registry.vet(instance_id);
    expect((await shown(instance))?.state).toBe('warming');
    await makeWarm();
  });

  it('of an earlier registration does not make the instance warm', async () => {
    const instance = await register({ warm_up });
    const open: (() => void)[] = [];
    instance.answer('/exec', (_, response) => {
      open.push(() => answerJson(response, { ok: true, output: {} }));
    });
    await beginWarmUps(bench.ctx);
    await waitFor('the first call', () => open.length === 1);
    await bench.registry.register(project, instance.registration({ warm_up }));
    await bench.registry.vet((await bench.read(instance.url)).instance_id);
    open[0]?.();
    await waitFor('the end of the first call', () => bench.ctx.probing.warmUps.size === 0);
    expect((await shown(instance))?.state).toBe('warming');
    expect(await beginWarmUps(bench.ctx)).toBe(1);
    await waitFor('the second call', () => open.length === 2);
    open[1]?.();
    await waitFor('the success', async () => (await shown(instance))?.state === 'up');
  });

  it('keeps a single-threaded instance from being judged silent', async () => {
    const instance = await register({ warm_up });
    const { instance_id } = await bench.read(instance.url);
    instance.answer('/health', () => undefined); // it is at work
    for (let round = 0; round < 4; round++) {
      await bench
        .db('instance')
        .where({ instance_id })
        .update({ next_probe_at: new Date(0) });
      await bench.impatient(100).probeDue();
    }
    expect((await shown(instance))?.state).toBe('warming');
    await bench.db('instance').where({ instance_id }).update({ warm_due_at: null });
  });

  it('is refused for an instance with a price, and cannot be requested without one', async () => {
    const instance = await bench.start();
    const paid = instance.registration({ warm_up, cost_model: { type: 'per_call', rate_usd: 0.1 } });
    const refused = bench.registry.register(project, paid);
    await expect(refused).rejects.toMatchObject({
      code: 'request_invalid',
      errors: [{ pointer: '/warm_up', code: 'not_free' }],
    });
    const cold = await register();
    await expect(requestWarmUp(bench.ctx, anna, asked(cold))).rejects.toMatchObject({
      code: 'state_conflict',
    });
  });
});
