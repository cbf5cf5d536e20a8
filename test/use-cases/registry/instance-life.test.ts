import type { Health } from '@capstan/core/contracts/capability';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { purgeInstances } from '../../../src/db/instance/instance.ts';
import { waitFor } from '../../support/wait.ts';
import { answerJson, aSpec, type FakeInstance } from './fake-instance.ts';
import { openRegistryBench, owner, project, type RegistryBench } from './registry-bench.ts';

let bench: RegistryBench;
beforeAll(async () => {
  bench = await openRegistryBench();
});
afterAll(() => bench.close());

async function registerVetted(
  name: string,
  health: Partial<Health> = {},
): Promise<{ instance: FakeInstance; id: string }> {
  const instance = await bench.start(aSpec({ name }));
  sayHealth(instance, name, health);
  await bench.registry.register(project, instance.registration());
  const id = (await bench.read(instance.url)).instance_id;
  await bench.registry.vet(id);
  return { instance, id };
}

function sayHealth(instance: FakeInstance, name: string, health: Partial<Health>): void {
  instance.answer('/health', (_, response) =>
    answerJson(response, { status: 'ok', name, version: '1.0.0', uptime_ms: 50_000, ...health }),
  );
}

function takeDown({ url }: FakeInstance): Promise<unknown> {
  return bench.db.raw(
    `update instance set state = 'down', failed_probes = 3, spec_digest = null, down_since = now(),
       next_probe_at = now() where endpoint = ?`,
    [url],
  );
}

async function listed(state?: 'down' | 'evicted'): Promise<string[]> {
  return (await bench.registry.list({ limit: 200, state })).items.map(({ name }) => name);
}

describe('an instance that stays down', () => {
  it('is evicted after 15 minutes: hidden unless asked for, probed a last time, revived by a heartbeat', async () => {
    const { instance } = await registerVetted('evictee');
    await instance.die();
    await takeDown(instance);
    await bench.age(instance.url, 14 * 60);
    await bench.registry.probeDue();
    expect((await bench.read(instance.url)).next_probe_at).not.toBeNull();
    expect(await listed('down')).toContain('evictee');
    await bench.age(instance.url, 61);
    expect([await listed(), await listed('down')].flat()).not.toContain('evictee');
    expect(await listed('evicted')).toEqual(['evictee']);
    expect((await bench.registry.get('evictee')).instances.map(({ state }) => state)).toEqual(['evicted']);
    await bench.registry.probeDue();
    expect(await bench.read(instance.url)).toMatchObject({ state: 'down', next_probe_at: null });

    await instance.rise();
    const answer = await bench.registry.heartbeat(project, 'evictee', { endpoint: instance.url });
    expect(answer).toEqual({ state: 'up', revived: true, heartbeat_interval_s: 60 });
    expect(await listed()).toContain('evictee');
    await waitFor('it is vetted', async () => (await bench.read(instance.url)).spec_digest !== null);
    expect((await bench.read(instance.url)).down_since).toBeNull();
  });

  it('is forgotten after 7 days, and its attempts are not', async () => {
    const week = 7 * 24 * 3_600;
    const fleet = ['purge.down', 'purge.left', 'purge.wrong', 'purge.silent', 'purge.recent'];
    const urls = new Map<string, string>();
    for (const name of fleet) urls.set(name, (await registerVetted(name)).instance.url);
    const url = (name: string): string => urls.get(name) as string;
    const attempt = await bench.openAttempt(url('purge.left'));
    await bench.db('attempt').update({ state: 'settled' });
    await bench.registry.deregister(owner, 'purge.left', { endpoint: url('purge.left') });
    const set = (name: string, row: object) => bench.db('instance').where({ name }).update(row);
    await set('purge.down', { state: 'down', down_since: bench.db.fn.now() });
    await set('purge.recent', { state: 'down', down_since: bench.db.fn.now() });
    await set('purge.wrong', { state: 'quarantined' });
    for (const name of fleet) await bench.age(url(name), week + (name === 'purge.recent' ? -60 : 60));
    expect(await purgeInstances(bench.db)).toBe(3);
    const left = await bench.db('instance').whereLike('name', 'purge.%').orderBy('name').pluck('name');
    expect(left).toEqual(['purge.recent', 'purge.silent']);
    const kept = await bench.db('attempt').where({ attempt_id: attempt }).first('endpoint');
    expect(kept).toEqual({ endpoint: url('purge.left') });
  });
});

describe('a new process', () => {
  const experience = {
    duration_ms: 70,
    deviation_ms: 5,
    success_count: 8,
    failure_count: 2,
    breaker_openings: 3,
    breaker_until: new Date(Date.now() + 60_000),
  };
  const nothing = {
    duration_ms: null,
    deviation_ms: null,
    success_count: 0,
    failure_count: 0,
    breaker_openings: 0,
    breaker_until: null,
  };
  const registerExperienced = async (name: string) => {
    const registered = await registerVetted(name);
    await bench.db('instance').where({ name }).update(experience);
    return registered;
  };

  it('is recognised by a falling uptime, and has nothing of the old one’s breaker and speed', async () => {
    const { instance, id } = await registerExperienced('restarted');
    sayHealth(instance, 'restarted', { uptime_ms: 60_000 });
    await bench.registry.vet(id);
    expect(await bench.read(instance.url)).toMatchObject({ ...experience, uptime_ms: 60_000 });
    sayHealth(instance, 'restarted', { uptime_ms: 59_000 });
    await bench.registry.vet(id);
    expect(await bench.read(instance.url)).toMatchObject({ ...nothing, uptime_ms: 59_000 });
  });

  it('is recognised after a registration also by an uptime shorter than the time since the last reading', async () => {
    const { instance, id } = await registerExperienced('registered.anew');
    sayHealth(instance, 'registered.anew', { uptime_ms: 55_000 });
    await bench.age(instance.url, 3_600);
    await bench.registry.vet(id);
    expect(await bench.read(instance.url)).toMatchObject(experience);
    await bench.age(instance.url, 3_600);
    await bench.registry.register(project, instance.registration());
    await bench.registry.vet(id);
    expect(await bench.read(instance.url)).toMatchObject(nothing);
  });

  it('is not suspected when the older of two probes at once is applied last', async () => {
    const { instance, id } = await registerExperienced('overtaken');
    let answerLate = (): void => undefined;
    instance.answer('/health', (_, response) => {
      answerLate = () =>
        answerJson(response, { status: 'ok', name: 'overtaken', version: '1.0.0', uptime_ms: 50_100 });
    });
    const requests = instance.requests.length;
    const vetting = bench.registry.vet(id);
    await waitFor('the first probe is under way', () => instance.requests.length > requests);
    sayHealth(instance, 'overtaken', { uptime_ms: 50_200 });
    await bench.db('instance').where({ instance_id: id }).update({ next_probe_at: bench.db.fn.now() });
    await bench.registry.probeDue();
    answerLate();
    expect(await vetting).toBe('usable');
    expect(await bench.read(instance.url)).toMatchObject({ ...experience, uptime_ms: 50_200 });
  });
});

describe('what is shown', () => {
  it('takes the queue depth from /health, with the calls of ours that were open then', async () => {
    const { instance, id } = await registerVetted('queued', { queue_depth: 4 });
    await bench.openAttempt(instance.url);
    await bench.registry.vet(id);
    expect(await bench.read(instance.url)).toMatchObject({ queue_depth: 4, queue_depth_held: 1 });
  });

  it('shows settle, the share of successes and the breaker by the database’s clock', async () => {
    const { instance } = await registerVetted('shown');
    const changed = instance.registration({ settle: 'reported' });
    const { created, instance: fresh } = await bench.registry.register(project, changed);
    expect([created, fresh.generation, fresh.settle]).toEqual(['changed', 2, 'reported']);
    expect([fresh.success_rate, fresh.breaker]).toEqual([0.9, { state: 'closed', until: null }]);
    expect(fresh.recent_calls).toEqual({ succeeded: 0, failed: 0 });
    const breakerAt = async (interval: string) => {
      await bench.db.raw(
        `update instance set breaker_until = now() + ?::interval, success_count = 9, failure_count = 21
         where endpoint = ?`,
        [interval, instance.url],
      );
      return (await bench.registry.get('shown')).instances[0];
    };
    const open = await breakerAt('1 minute');
    const until = (await bench.read(instance.url)).breaker_until?.toISOString();
    expect([open?.breaker, open?.success_rate]).toEqual([{ state: 'open', until }, 0.45]);
    expect(open?.recent_calls).toEqual({ succeeded: 9, failed: 21 });
    expect((await breakerAt('-1 second'))?.breaker).toEqual({ state: 'half_open', until: null });
  });
});
