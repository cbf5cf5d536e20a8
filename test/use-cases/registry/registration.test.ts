import { AppError } from '@capstan/core/errors/app-error';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { waitFor } from '../../support/wait.ts';
import { aSpec } from './fake-instance.ts';
import { openRegistryBench, otherProject, owner, project, type RegistryBench } from './registry-bench.ts';

let bench: RegistryBench;
beforeAll(async () => {
  bench = await openRegistryBench();
});
afterAll(() => bench.close());

async function errorOf(work: Promise<unknown>): Promise<AppError> {
  const thrown: unknown = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(thrown).toBeInstanceOf(AppError);
  return thrown as AppError;
}

/** Registers, and waits until the background vetting has ended. */
async function registerVetted(spec = aSpec()) {
  const instance = await bench.start(spec);
  await bench.registry.register(project, instance.registration());
  const { instance_id } = await bench.read(instance.url);
  await bench.registry.vet(instance_id);
  return { instance, instance_id };
}

describe('register', () => {
  it('answers new, then same, then changed with the next generation', async () => {
    const instance = await bench.start();
    const first = await bench.registry.register(project, instance.registration());
    const again = await bench.registry.register(
      project,
      instance.registration({ endpoint: `${instance.url}/` }),
    );
    const paid = instance.registration({ cost_model: { type: 'per_call', rate_usd: 0.1, notes: 'eu' } });
    const changed = await bench.registry.register(project, paid);
    expect(
      [first, again, changed].map(({ created, instance: { generation } }) => [created, generation]),
    ).toEqual([
      ...[
        ['new', 1],
        ['same', 1],
        ['changed', 2],
      ],
    ]);
    expect(changed.instance).toMatchObject({
      name: 'concat',
      version: '1.0.0',
      endpoint: instance.url,
      spec_url: `${instance.url}/spec`,
      state: 'up',
      cost_model: { type: 'per_call', rate_usd: 0.1, notes: 'eu' },
      in_flight: 0,
    });
    expect(Date.parse(changed.instance.expires_at) - Date.parse(changed.instance.last_heartbeat_at)).toBe(
      75_000,
    );
  });

  it('keeps one instance when it registers many times at once', async () => {
    const instance = await bench.start();
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => bench.registry.register(project, instance.registration())),
    );
    expect(answers.filter(({ created }) => created === 'new')).toHaveLength(1);
    expect(new Set(answers.map(({ instance: { generation } }) => generation))).toEqual(new Set([1]));
  });

  it('refuses another project’s instance and leaves it as it was', async () => {
    const instance = await bench.start();
    await bench.registry.register(project, instance.registration());
    const stolen = bench.registry.register(otherProject, instance.registration({ tags: ['stolen'] }));
    expect((await errorOf(stolen)).code).toBe('forbidden');
    expect(await bench.read(instance.url)).toMatchObject({ owner_project: project, tags: ['local'] });
  });

  it.each([
    ['endpoint', 'ftp://10.0.0.1/'],
    ['endpoint', 'http://user@10.0.0.1/'],
    ['endpoint', 'http://@10.0.0.1/'],
    ['endpoint', 'http://10.0.0.1/?'],
    ['endpoint', 'http://10.0.0.1/#top'],
    ['endpoint', 'http://169.254.169.254/'],
    ['endpoint', 'http://[::ffff:169.254.169.254]/'],
    ['endpoint', 'http://0/'],
    ['spec_url', 'http://10.0.0.2/spec'],
    ['health_url', 'https://10.0.0.1/health'],
  ])('refuses %s %s and names the field', async (field, address) => {
    const good = {
      endpoint: 'http://10.0.0.1',
      spec_url: 'http://10.0.0.1/spec',
      health_url: 'http://10.0.0.1/health',
    };
    const instance = await bench.start();
    const refused = bench.registry.register(project, instance.registration({ ...good, [field]: address }));
    const { code, status, errors } = await errorOf(refused);
    expect({ code, status, pointer: errors?.[0]?.pointer }).toEqual({
      code: 'request_invalid',
      status: 422,
      pointer: `/${field}`,
    });
  });

  it('vets in the background: the spec is stored and shown', async () => {
    const spec = aSpec({ name: 'vetted.soon' });
    const instance = await bench.start(spec);
    const { instance: answered } = await bench.registry.register(project, instance.registration());
    expect(answered.spec_digest).toBeNull();
    await waitFor('the spec is read', async () => (await bench.read(instance.url)).spec_digest !== null);
    const detail = await bench.registry.get('vetted.soon');
    expect(detail.specs).toEqual([{ digest: detail.instances[0]?.spec_digest, spec }]);
  });

  it('leaves the vetting to maintenance when it has no result within 5 s', async () => {
    const instance = await bench.start(aSpec({ name: 'orphan' }));
    instance.answer('/health', () => undefined);
    await bench.registry.register(project, instance.registration());
    const { next_probe_at, registered_at } = await bench.read(instance.url);
    expect((next_probe_at?.getTime() ?? 0) - registered_at.getTime()).toBe(5_000);
    await waitFor('the background vetting hangs', () => instance.requests.length === 1);
    instance.answer('/health', null);
    await bench.age(instance.url, 5);
    expect(await bench.registry.probeDue()).toBe(1);
    expect(await bench.read(instance.url)).toMatchObject({ state: 'up', next_probe_at: null });
    expect((await bench.registry.get('orphan')).specs).toHaveLength(1);
  });
});

describe('heartbeat', () => {
  it('revives an instance that is down, and its spec is read again', async () => {
    const { instance } = await registerVetted();
    await bench.db.raw(`update instance set state = 'down', spec_digest = null where endpoint = ?`, [
      instance.url,
    ]);
    const answer = await bench.registry.heartbeat(project, 'concat', { endpoint: `${instance.url}/` });
    expect(answer).toEqual({ state: 'up', revived: true, heartbeat_interval_s: 60 });
    // Due at once; the probe that follows in the background may have been made already.
    const { next_probe_at, spec_digest } = await bench.read(instance.url);
    if (spec_digest === null) expect(next_probe_at?.getTime()).toBeLessThanOrEqual(Date.now());
  });

  it('does not revive a deregistered instance; a registration does', async () => {
    const { instance } = await registerVetted();
    await bench.registry.deregister(owner, 'concat', { endpoint: instance.url });
    const answer = await bench.registry.heartbeat(project, 'concat', { endpoint: instance.url });
    expect(answer).toEqual({ state: 'deregistered', revived: false, heartbeat_interval_s: 60 });
    expect((await bench.registry.register(project, instance.registration())).instance.state).toBe('up');
  });

  it('keeps the queue depth with the calls of ours that were open then', async () => {
    const { instance } = await registerVetted();
    await bench.openAttempt(instance.url);
    await bench.openAttempt(instance.url);
    await bench.registry.heartbeat(project, 'concat', { endpoint: instance.url, queue_depth: 5 });
    await bench.registry.heartbeat(project, 'concat', { endpoint: instance.url });
    expect(await bench.read(instance.url)).toMatchObject({ queue_depth: 5, queue_depth_held: 2 });
  });

  it('answers 404 for an unknown endpoint or name, and to another project', async () => {
    const { instance } = await registerVetted();
    const { registry } = bench;
    const unknown = registry.heartbeat(project, 'concat', { endpoint: 'http://127.0.0.1:9' });
    expect((await errorOf(unknown)).code).toBe('not_found');
    const misnamed = registry.heartbeat(project, 'other', { endpoint: instance.url });
    expect((await errorOf(misnamed)).code).toBe('not_found');
    const foreign = registry.heartbeat(otherProject, 'concat', { endpoint: instance.url });
    expect((await errorOf(foreign)).code).toBe('not_found');
  });
});

describe('deregister', () => {
  it('shows draining while calls are open, deregistered afterwards, and may be repeated', async () => {
    const { instance } = await registerVetted();
    const attempt = await bench.openAttempt(instance.url);
    const leave = () => bench.registry.deregister(owner, 'concat', { endpoint: instance.url });
    expect(await leave()).toEqual({ state: 'draining', stale: false });
    await bench.db.raw(`update attempt set state = 'settled' where attempt_id = ?`, [attempt]);
    expect(await leave()).toEqual({ state: 'deregistered', stale: false });
    expect((await bench.read(instance.url)).next_probe_at).toBeNull();
  });

  it('answers 404 for an unknown endpoint', async () => {
    const unknown = bench.registry.deregister(owner, 'concat', { endpoint: 'http://10.9.9.9' });
    expect((await errorOf(unknown)).code).toBe('not_found');
  });
});

describe('list and get', () => {
  it('pages by name, filters by tag and state, and hides what is deregistered', async () => {
    const names = ['list.b', 'list.a', 'list.c'];
    for (const name of names) {
      const instance = await bench.start(aSpec({ name, description: `does ${name}` }));
      await bench.registry.register(project, instance.registration({ tags: ['listed'] }));
      await bench.registry.vet((await bench.read(instance.url)).instance_id);
      const leaver = await bench.start(aSpec({ name }));
      await bench.registry.register(project, leaver.registration({ tags: ['listed'] }));
      await bench.registry.deregister(owner, name, { endpoint: leaver.url });
    }
    const first = await bench.registry.list({ tag: 'listed', limit: 2 });
    const cursor = first.next_cursor ?? undefined;
    const second = await bench.registry.list({ tag: 'listed', limit: 2, cursor });
    const shown = [...first.items, ...second.items];
    expect(shown.map(({ name, description, instances }) => [name, description, instances.length])).toEqual([
      ...[
        ['list.a', 'does list.a', 1],
        ['list.b', 'does list.b', 1],
        ['list.c', 'does list.c', 1],
      ],
    ]);
    expect(second.next_cursor).toBeNull();
    expect(shown.map(({ spec }) => spec)).toEqual([undefined, undefined, undefined]);
    const withSpecs = await bench.registry.list({ tag: 'listed', include: 'spec', limit: 10 });
    expect(withSpecs.items.map(({ name, spec }) => [name, spec?.name, spec?.description])).toEqual([
      ...[
        ['list.a', 'list.a', 'does list.a'],
        ['list.b', 'list.b', 'does list.b'],
        ['list.c', 'list.c', 'does list.c'],
      ],
    ]);
    const gone = await bench.registry.list({ tag: 'listed', state: 'deregistered', limit: 10 });
    expect(gone.items.flatMap(({ instances }) => instances.map(({ state }) => state))).toEqual([
      ...['deregistered', 'deregistered', 'deregistered'],
    ]);
    expect((await bench.registry.get('list.a')).instances).toHaveLength(2);
  });

  it('answers 404 for a name that was never registered', async () => {
    expect((await errorOf(bench.registry.get('nobody'))).code).toBe('not_found');
  });
});
