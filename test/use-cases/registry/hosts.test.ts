import { randomUUID } from 'node:crypto';
import type { KeyScope } from '@capstan/core/contracts/access';
import { Registration } from '@capstan/core/contracts/capability';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pollInstances } from '../../../src/db/instance/instance-list.ts';
import { drainInstance, endDrains, undrainInstance } from '../../../src/use-cases/registry/drain.ts';
import {
  drainHost,
  listProjectHosts,
  undrainHost,
  warmUpHost,
} from '../../../src/use-cases/registry/hosts.ts';
import { aSpec, type FakeInstance } from './fake-instance.ts';
import { openRegistryBench, otherProject, owner, project, type RegistryBench } from './registry-bench.ts';

let bench: RegistryBench;
beforeAll(async () => {
  bench = await openRegistryBench();
});
afterAll(() => bench.close());

const anna = { ...owner, key_id: 'user:anna', scopes: new Set<KeyScope>(['capability:register']) };
const stranger = { ...anna, project_id: otherProject };
const operator = {
  ...stranger,
  key_id: 'user:op',
  scopes: new Set<KeyScope>(['operator', 'capability:register']),
};
const reader = { ...anna, projects: [project] };
const overseer = { ...operator, projects: [project, otherProject] };

function aBox(slots = 2, memory_gb?: number) {
  return { host: { name: `gpu-${randomUUID()}`, slots, ...(memory_gb === undefined ? {} : { memory_gb }) } };
}

async function register(changes: Partial<Registration> = {}, name = 'concat'): Promise<FakeInstance> {
  const instance = await bench.start(aSpec({ name }));
  await bench.registry.register(project, instance.registration(changes));
  return instance;
}

/** As the registry shows it. */
async function shown({ url }: FakeInstance, name = 'concat') {
  const { instances } = await bench.registry.get(name);
  return instances.find(({ endpoint }) => endpoint === url);
}

async function hostOf(name: string) {
  const { items } = await listProjectHosts(bench.ctx, reader, { limit: 200 });
  return items.find((host) => host.name === name);
}

function asked<Body extends object>({ host: { name } }: ReturnType<typeof aBox>, body?: Body) {
  return { name, body: { ...body } as Body };
}

function messagesOf(fields: object): unknown {
  const body = { name: 'concat', version: '1.0.0', tags: [], cost_model: { type: 'free', rate_usd: 0 } };
  const urls = {
    endpoint: 'http://a.test',
    spec_url: 'http://a.test/spec',
    health_url: 'http://a.test/health',
  };
  const { error } = Registration.safeParse({ ...body, ...urls, ...fields });
  return error?.issues.map(({ path, message }) => [path.join('.'), message]);
}

describe('a registration', () => {
  it('names a host, its size and what a call takes of it', async () => {
    const box = aBox(4, 24);
    const instance = await register({ ...box, takes: 3 });
    expect(await shown(instance)).toMatchObject({ ...box, takes: 3, generation: 1 });
    const plain = await bench.registry.register(project, instance.registration(box));
    expect(plain).toMatchObject({ created: 'changed', instance: { takes: 1, generation: 2 } });
    const left = await bench.registry.register(project, instance.registration());
    expect([left.instance.host, left.instance.takes]).toEqual([undefined, undefined]);
    expect(await hostOf(box.host.name)).toBeUndefined();
  });

  it.each([
    [{ host: { name: 'gpu 1', slots: 1 } }, 'host.name', /letters, digits, _, - or dots/],
    [{ host: { name: 'gpu', slots: 0 } }, 'host.slots', />=1/],
    [{ host: { name: 'gpu', slots: 10_001 } }, 'host.slots', /<=10000/],
    [{ host: { name: 'gpu', slots: 1, memory_gb: 0 } }, 'host.memory_gb', />0/],
    [{ host: { name: 'gpu', slots: 2 }, takes: 3 }, 'takes', /^is 3; 1 to 2, the slots of gpu, are allowed$/],
    [{ takes: 1 }, 'takes', /^is 1, and the registration names no host/],
  ])('is refused with %j', (fields, place, message) => {
    expect(messagesOf(fields)).toEqual([[place, expect.stringMatching(message)]]);
  });

  it('decides the size of its host, and the list shows what others have registered', async () => {
    const box = aBox(4, 24);
    const [first, second] = [await register({ ...box, takes: 4 }), await register(box, 'voice')];
    await bench.registry.register(
      project,
      second.registration({ host: { ...box.host, slots: 2, memory_gb: 48 } }),
    );
    expect(await hostOf(box.host.name)).toMatchObject({
      slots: 2,
      memory_gb: 48,
      held: 0,
      owner_project: project,
      capabilities: ['concat', 'voice'],
      instances: [
        { name: 'concat', endpoint: first.url, takes: 4, slots: 4, memory_gb: 24 },
        { name: 'voice', endpoint: second.url, takes: 1, slots: 2, memory_gb: 48 },
      ],
      warnings: [
        `concat at ${first.url} registered 4 slots; the newest registration has 2`,
        `concat at ${first.url} registered 24 GB of memory; the newest registration has 48 GB`,
        `a call of concat at ${first.url} takes 4 slots; it gets all 2`,
      ],
    });
    await bench.openAttempt(first.url);
    expect(await hostOf(box.host.name)).toMatchObject({ held: 2 });
  });

  it('of another project under the address leaves the host of the former owner', async () => {
    const box = aBox();
    const instance = await register(box, 'moved');
    await drainHost(bench.ctx, anna, asked(box));
    const moved = { projects: [otherProject], set_by: 'key_operator' };
    await bench.db('publisher').where({ name: 'moved' }).update(moved);
    const { instance: taken } = await bench.registry.register(otherProject, instance.registration(box));
    expect([taken.state, taken.drain]).toEqual(['up', undefined]);
    const all = await listProjectHosts(bench.ctx, overseer, { projects: 'all', limit: 200 });
    const own = all.items.filter(({ name }) => name === box.host.name);
    expect(own.map(({ owner_project, instances }) => [owner_project, instances.length])).toEqual([
      [project, 0],
      [otherProject, 1],
    ]);
  });
});

describe('a drain of a host', () => {
  it('drains its instances and those that come, and its end leaves drains of single instances', async () => {
    const box = aBox();
    const [first, broken] = [await register(box), await register(box)];
    const by = { name: 'concat', body: { endpoint: broken.url, reason: 'broken' } };
    await drainInstance(bench.ctx, anna, by);
    const drained = await drainHost(bench.ctx, operator, asked(box, { reason: 'driver', project }));
    expect(drained.drain).toMatchObject({ by: 'user:op', reason: 'driver', until: null });
    const late = await register(box);
    const drains = await Promise.all([first, broken, late].map((one) => shown(one)));
    expect(drains.map((one) => [one?.state, one?.drain?.reason, one?.drain?.with_host])).toEqual([
      ['draining', 'driver', true],
      ['draining', 'broken', undefined],
      ['draining', 'driver', true],
    ]);
    const { instances } = await pollInstances(bench.db, '0');
    const polled = instances.filter(({ host }) => host === box.host.name);
    expect(polled.map(({ state }) => state)).toEqual(['draining', 'draining', 'draining']);
    const free = await undrainHost(bench.ctx, anna, asked(box));
    expect([free.drain, free.instances.map(({ state }) => state)]).toEqual([
      undefined,
      ['up', 'draining', 'up'],
    ]);
    await undrainInstance(bench.ctx, anna, by);
  });

  it('does not return to an instance that was undrained by itself, and ends for an instance that leaves the host', async () => {
    const box = aBox();
    const [free, gone] = [await register(box), await register(box)];
    await drainHost(bench.ctx, anna, asked(box));
    await undrainInstance(bench.ctx, anna, { name: 'concat', body: { endpoint: free.url } });
    await bench.registry.register(project, free.registration({ ...box, tags: ['changed'] }));
    await bench.registry.register(project, gone.registration());
    expect([(await shown(free))?.state, (await shown(gone))?.state]).toEqual(['up', 'up']);
    await bench.registry.register(project, gone.registration(box));
    expect((await shown(gone))?.state).toBe('draining');
  });

  it('ends at its time with those of its instances', async () => {
    const box = aBox();
    const instance = await register(box);
    const until = new Date(Date.now() + 3_600_000).toISOString();
    await drainHost(bench.ctx, anna, asked(box, { until }));
    expect((await shown(instance))?.drain?.until).toBe(until);
    for (const table of ['instance', 'host'])
      await bench.db(table).where({ drain_until: until }).update({ drain_until: new Date() });
    expect(await endDrains(bench.ctx)).toBe(2);
    expect([(await shown(instance))?.state, (await hostOf(box.host.name))?.drain]).toEqual(['up', undefined]);
  });

  it('is noted in the audit log', async () => {
    const box = aBox();
    await register(box);
    await drainHost(bench.ctx, anna, asked(box, { reason: 'driver' }));
    await undrainHost(bench.ctx, anna, asked(box));
    await undrainHost(bench.ctx, anna, asked(box));
    const rows = await bench.db('audit').where({ subject: box.host.name }).orderBy('entry');
    expect(rows.map(({ action, actor, project_id, data }) => [action, actor, project_id, data])).toEqual([
      ['host.drained', 'user:anna', project, { reason: 'driver', until: null }],
      ['host.undrained', 'user:anna', project, {}],
    ]);
  });

  it('is refused to other projects, to keys that may not register all of it, and with an end in the past', async () => {
    const box = aBox();
    const instance = await register(box);
    await register(box, 'voice');
    const narrow = { ...anna, scopes: new Set<KeyScope>(['capability:register:concat']) };
    const past = { until: '2020-01-01T00:00:00.000Z' };
    const refusals = [
      () => drainHost(bench.ctx, stranger, asked(box)),
      () => drainHost(bench.ctx, stranger, asked(box, { project })),
      () => drainHost(bench.ctx, operator, asked(box)),
      () => undrainHost(bench.ctx, narrow, asked(box)),
      () => warmUpHost(bench.ctx, narrow, asked(box)),
      async () => drainHost(bench.ctx, anna, asked(box, past)),
    ];
    const codes = await Promise.all(refusals.map((ask) => ask().catch(({ code }) => code)));
    expect(codes).toEqual([
      'not_found',
      'not_found',
      'not_found',
      'forbidden',
      'forbidden',
      'request_invalid',
    ]);
    expect((await shown(instance))?.state).toBe('up');
  });
});

it('an instance that went away with open calls is shown until they end', async () => {
  const box = aBox();
  const { url } = await register(box);
  const { instance_id } = await bench.read(url);
  await bench.registry.vet(instance_id);
  await bench.db.raw(
    `update instance set state = 'down', down_since = now() - interval '1 hour' where instance_id = ?`,
    [instance_id],
  );
  await bench.db('slot_lease').insert({
    instance_id,
    holder: randomUUID(),
    slots: 1,
    expires_at: bench.db.raw(`now() + interval '1 hour'`),
  });
  expect(await hostOf(box.host.name)).toMatchObject({
    held: 1,
    instances: [{ endpoint: url, state: 'evicted', in_flight: 1 }],
  });
  await bench.db('slot_lease').where({ instance_id }).delete();
  expect((await hostOf(box.host.name))?.instances).toEqual([]);
});

it('a warm-up of a host makes those of its instances due', async () => {
  const box = aBox();
  const plain = await register(box);
  await expect(warmUpHost(bench.ctx, anna, asked(box))).rejects.toMatchObject({ code: 'state_conflict' });
  const warm = await register({ ...box, warm_up: { input: { clips: [] }, timeout_s: 30 } });
  await bench.db('instance').where({ endpoint: warm.url }).update({ warm_due_at: null });
  const { instances } = await warmUpHost(bench.ctx, anna, asked(box));
  expect(Object.fromEntries(instances.map(({ endpoint, state }) => [endpoint, state]))).toEqual({
    [plain.url]: 'up',
    [warm.url]: 'warming',
  });
});

it('hosts are listed by name, page by page', async () => {
  const names = (await listProjectHosts(bench.ctx, reader, { limit: 200 })).items.map(({ name }) => name);
  const paged: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await listProjectHosts(bench.ctx, reader, { limit: 3, cursor });
    paged.push(...page.items.map(({ name }) => name));
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  expect(paged).toEqual(names.toSorted());
  await expect(listProjectHosts(bench.ctx, reader, { limit: 3, cursor: 'Z3B1' })).rejects.toMatchObject({
    code: 'request_invalid',
  });
  await expect(listProjectHosts(bench.ctx, reader, { projects: 'all', limit: 3 })).rejects.toMatchObject({
    code: 'forbidden',
  });
});
