import type { DeregisterAnswer, Registration } from '@capstan/core/contracts/capability';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { waitFor } from '../../support/wait.ts';
import { answerJson, aSpec, type FakeInstance } from './fake-instance.ts';
import { openRegistryBench, owner, project, type RegistryBench } from './registry-bench.ts';

let bench: RegistryBench;
beforeAll(async () => {
  bench = await openRegistryBench();
});
afterAll(() => bench.close());

/** Registered by one process and, on top of that, by its successor. */
async function registerTwice(): Promise<FakeInstance> {
  const instance = await bench.start(aSpec());
  for (let times = 0; times < 2; times++) await registerVetted(instance);
  return instance;
}

async function registerVetted(instance: FakeInstance, changes: Partial<Registration> = {}): Promise<void> {
  await bench.registry.register(project, instance.registration(changes));
  await bench.registry.vet((await bench.read(instance.url)).instance_id);
}

/** Deregisters; fails when the instance was asked anything for that. */
async function leaveUnasked(instance: FakeInstance, generation?: number): Promise<DeregisterAnswer> {
  const requests = instance.requests.length;
  const answer = await leave(instance, generation);
  expect(instance.requests.length).toBe(requests);
  return answer;
}

function leave({ url }: FakeInstance, generation?: number): Promise<DeregisterAnswer> {
  return bench.registry.deregister(owner, 'concat', { endpoint: url, generation });
}
const stale = { state: 'up', stale: true };
const executed = { state: 'deregistered', stale: false };

describe('a deregistration', () => {
  it('within 10 s after a newer registration is stale while the instance answers', async () => {
    const instance = await registerTwice();
    const before = await bench.read(instance.url);
    expect(await leave(instance)).toEqual(stale);
    const after = await bench.read(instance.url);
    expect([after.state, after.generation, after.spec_digest]).toEqual([
      'up',
      before.generation,
      before.spec_digest,
    ]);
    expect(after.next_probe_at).not.toBeNull();
    await bench.age(instance.url, 10);
    expect(await leave(instance)).toEqual(executed);
  });

  it('is executed when the address is silent, or belongs to another instance', async () => {
    const dead = await registerTwice();
    await dead.die();
    expect(await leave(dead)).toEqual(executed);
    const another = await registerTwice();
    another.answer('/health', (_, response) =>
      answerJson(response, { status: 'ok', name: 'concat', version: '2.0.0', uptime_ms: 1 }),
    );
    expect(await leave(another)).toEqual(executed);
  });

  it('of the first registration, or the first since the last one, is executed at once, without a look', async () => {
    const instance = await bench.start();
    for (let life = 1; life <= 2; life++) {
      await registerVetted(instance);
      expect((await bench.read(instance.url)).state).toBe('up');
      expect(await leaveUnasked(instance)).toEqual(executed);
    }
  });

  it('with a generation is decided by it alone', async () => {
    const instance = await registerTwice();
    await registerVetted(instance, { tags: ['new'] });
    expect(await leaveUnasked(instance, 1)).toEqual(stale);
    await bench.age(instance.url, 60);
    expect(await leaveUnasked(instance, 1)).toEqual(stale);
    await registerVetted(instance, { tags: ['newer'] });
    expect(await leaveUnasked(instance, 3)).toEqual(executed);
  });

  it('holds no lock while it asks, and yields to a registration made meanwhile', async () => {
    const instance = await registerTwice();
    let hangUp = (): void => undefined;
    instance.answer('/health', (_, response) => {
      hangUp = () => response.destroy();
    });
    const requests = instance.requests.length;
    const leaving = leave(instance);
    await waitFor('it asks', () => instance.requests.length > requests);
    await bench.registry.register(project, instance.registration());
    instance.answer('/health', null);
    hangUp();
    expect(await leaving).toMatchObject({ stale: true });
    expect((await bench.read(instance.url)).state).not.toBe('deregistered');
  });
});
