import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listAudit } from '../../../src/db/access/audit.ts';
import { purgeInstances } from '../../../src/db/instance/instance.ts';
import { listNamePublishers, publishName } from '../../../src/use-cases/registry/publishers.ts';
import { aSpec, type FakeInstance } from './fake-instance.ts';
import { openRegistryBench, otherProject, owner, project, type RegistryBench } from './registry-bench.ts';

let bench: RegistryBench;
beforeAll(async () => {
  bench = await openRegistryBench({ perProject: 12 });
});
afterAll(() => bench.close());

function register(by: string, instance: FakeInstance) {
  return bench.registry.register(by, instance.registration());
}

async function vetted(instance: FakeInstance): Promise<unknown> {
  await bench.registry.vet((await bench.read(instance.url)).instance_id);
  return bench.read(instance.url);
}

const schema = (field: string) => ({
  type: 'object',
  properties: { [field]: { type: 'string' } },
  required: [field],
});

describe('a name of a capability', () => {
  it('is used by each project for itself, and shared by the one that registers it first', async () => {
    const [first, second] = [
      await bench.start(aSpec({ name: 'first', input: schema('clip') })),
      await bench.start(aSpec({ name: 'first', input: schema('other') })),
    ];
    await register(project, first);
    expect((await register(otherProject, second)).created).toBe('new');
    expect([await vetted(first), await vetted(second)]).toMatchObject([{ state: 'up' }, { state: 'up' }]);
    for (const shared_with of ['all', [project]] as const) {
      const sharing = {
        ...second.registration(),
        shared_with: shared_with === 'all' ? shared_with : [...shared_with],
      };
      await expect(bench.registry.register(otherProject, sharing)).rejects.toMatchObject({
        code: 'forbidden',
        message: expect.stringContaining('PUT /v1/publishers/first'),
      });
    }
    expect(await bench.read(second.url)).toMatchObject({ state: 'up', shared_with: [] });
  });

  it('is shared with others when an operator decides it', async () => {
    const [first, second] = [
      await bench.start(aSpec({ name: 'shared' })),
      await bench.start(aSpec({ name: 'shared' })),
    ];
    await register(project, first);
    await publishName(bench, owner, { name: 'shared', projects: [project, otherProject] });
    await bench.registry.register(otherProject, { ...second.registration(), shared_with: 'all' });
    const { instances } = await bench.registry.get('shared', project);
    expect(instances.map(({ owner_project }) => owner_project)).toEqual([project, otherProject]);
  });

  it('moves from a squatter with the address, and its owner registers as if the squatter had not', async () => {
    const victim = await bench.start(aSpec({ name: 'squat', input: schema('clip') }));
    const squatter = await bench.start(aSpec({ name: 'squat', input: schema('other') }));
    await bench.registry.register(otherProject, { ...squatter.registration(), shared_with: 'all' });
    await register(otherProject, victim);
    await vetted(squatter);
    await expect(register(project, victim)).rejects.toMatchObject({ code: 'forbidden' });
    await publishName(bench, owner, { name: 'squat', projects: [project] });
    expect(await bench.read(squatter.url)).toMatchObject({ state: 'up', shared_with: [] });
    expect((await register(project, victim)).instance.generation).toBe(2);
    expect(await vetted(victim)).toMatchObject({ state: 'up', owner_project: project });
    await expect(register(otherProject, victim)).rejects.toMatchObject({ code: 'forbidden' });
    const leave = bench.registry.deregister({ project_id: otherProject, key_id: 'key_two' }, 'squat', {
      endpoint: victim.url,
    });
    await expect(leave).rejects.toMatchObject({ code: 'not_found' });
    const acts = await listAudit(bench.db, project, { withGlobal: true, subject: 'squat', limit: 5 });
    expect(acts).toMatchObject([
      { actor: owner.key_id, action: 'capability.published', data: { projects: [project] } },
    ]);
  });

  it('is listed with its projects, and free again when nothing of it is left unless an operator gave it', async () => {
    for (const name of ['left', 'given']) {
      const instance = await bench.start(aSpec({ name }));
      await register(project, instance);
      if (name === 'given') await publishName(bench, owner, { name: name, projects: [project] });
      await bench.registry.deregister(owner, name, { endpoint: instance.url });
      await bench.age(instance.url, 8 * 86_400);
    }
    await purgeInstances(bench.db);
    const { items } = await listNamePublishers(bench, { limit: 200 });
    const named = items.filter(({ name }) => name === 'left' || name === 'given');
    expect(named).toEqual([{ name: 'given', projects: [project], updated_at: expect.any(String) }]);
  });

  it('is given to projects that there are', async () => {
    await expect(
      publishName(bench, owner, { name: 'nobody', projects: ['prj_missing'] }),
    ).rejects.toMatchObject({
      code: 'request_invalid',
      message: expect.stringContaining('prj_missing'),
    });
  });
});

it('a project has as many instances as the setting allows, and those that left do not count', async () => {
  await bench.db('instance').delete();
  const instances = await Promise.all(
    Array.from({ length: 14 }, (_, n) => bench.start(aSpec({ name: `many.${n}` }))),
  );
  const outcomes = await Promise.allSettled(instances.map((instance) => register(otherProject, instance)));
  const codes = outcomes.map((outcome) => (outcome.status === 'fulfilled' ? 'in' : outcome.reason.code));
  expect([codes.filter((code) => code === 'in').length, new Set(codes)]).toEqual([
    12,
    new Set(['in', 'limit_reached']),
  ]);
  const [at = 0, refused = 0] = [codes.indexOf('in'), codes.indexOf('limit_reached')];
  const [member, next] = [instances[at] as FakeInstance, instances[refused] as FakeInstance];
  expect((await register(otherProject, member)).created).toBe('same');
  const by = { project_id: otherProject, key_id: 'key_two' };
  await bench.registry.deregister(by, `many.${at}`, { endpoint: member.url, generation: 1 });
  expect((await register(otherProject, next)).created).toBe('new');
  await expect(register(otherProject, member)).rejects.toMatchObject({ code: 'limit_reached' });
});
