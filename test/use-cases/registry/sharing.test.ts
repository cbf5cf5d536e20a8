import type { SharedWith } from '@capstan/core/contracts/capability';
import { serves } from '@capstan/core/routing/visible-to';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listAudit } from '../../../src/db/access/audit.ts';
import { listCapabilityNames } from '../../../src/db/instance/capability-name.ts';
import { drainInstance } from '../../../src/use-cases/registry/drain.ts';
import { shareInstances } from '../../../src/use-cases/registry/sharing.ts';
import { aSpec, type FakeInstance } from './fake-instance.ts';
import { openRegistryBench, otherProject, project, type RegistryBench } from './registry-bench.ts';

let bench: RegistryBench;
beforeAll(async () => {
  bench = await openRegistryBench();
});
afterAll(() => bench.close());

const owner = { project_id: project, key_id: 'key_one', scopes: new Set(['capability:register'] as const) };
const stranger = { ...owner, project_id: otherProject, key_id: 'key_two' };
const operator = { ...stranger, scopes: new Set(['operator'] as const) };

async function registered(name: string, shared_with?: SharedWith): Promise<FakeInstance> {
  const instance = await bench.start(aSpec({ name }));
  await bench.registry.register(project, { ...instance.registration(), shared_with });
  await bench.registry.vet((await bench.read(instance.url)).instance_id);
  return instance;
}

async function namesOf(projectId: string): Promise<readonly string[]> {
  return [...(await listCapabilityNames(bench.db, projectId))];
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'done',
    (error) => error.code,
  );
}

describe('the rule in SQL', () => {
  it('is that of the router', async () => {
    const owned = [[], 'all', ['b'], ['b', 'c'], ['all']].map((shared_with) => ({
      owner_project: 'a',
      shared_with,
    }));
    const asked = owned.flatMap((one) => ['a', 'b', 'c', 'all'].map((by) => ({ ...one, by })));
    const { rows } = await bench.db.raw(
      'select serves(r.owner_project, r.shared_with, r.by) as ok from jsonb_to_recordset(?) r (owner_project text, shared_with jsonb, by text)',
      [JSON.stringify(asked)],
    );
    const expected = asked.map(({ by, ...one }) => serves(one as Parameters<typeof serves>[0], by));
    expect(rows.map(({ ok }: { ok: boolean }) => ok)).toEqual(expected);
  });
});

describe('an instance', () => {
  it('is seen by its own project alone, unless it is shared', async () => {
    for (const [name, shared_with] of [['own'], ['with.all', 'all'], ['with.two', [otherProject]]] as const) {
      await registered(name, shared_with as SharedWith | undefined);
    }
    expect((await namesOf(project)).toSorted()).toEqual(['own', 'with.all', 'with.two']);
    expect((await namesOf(otherProject)).toSorted()).toEqual(['with.all', 'with.two']);
    expect(await namesOf('prj_third')).toEqual(['with.all']);
    const { items } = await bench.registry.list({ limit: 10 }, otherProject);
    expect(items.map(({ name }) => name)).toEqual(['with.all', 'with.two']);
    expect(await codeOf(bench.registry.get('own', otherProject))).toBe('not_found');
    expect((await bench.registry.get('with.two', otherProject)).specs).toHaveLength(1);
  });

  it('keeps what it is shared with over registrations that do not name it, and loses it where one does', async () => {
    const instance = await registered('kept', [otherProject]);
    const again = await bench.registry.register(project, instance.registration());
    expect(again).toMatchObject({
      created: 'same',
      instance: { shared_with: [otherProject], generation: 1 },
    });
    const without = await bench.registry.register(project, { ...instance.registration(), shared_with: [] });
    expect(without).toMatchObject({ created: 'changed', instance: { shared_with: [], generation: 2 } });
  });

  it('is shared by its owner or an operator, one or all of a name; each change is in the audit log', async () => {
    const [one, two] = [await registered('many'), await registered('many')];
    const share = (by: Parameters<typeof shareInstances>[1], shared_with: SharedWith, endpoint?: string) =>
      shareInstances(bench.ctx, by, { name: 'many', body: { shared_with, endpoint } });
    const states = async () => [
      (await bench.read(one.url)).shared_with,
      (await bench.read(two.url)).shared_with,
    ];
    await share(owner, [otherProject], one.url);
    expect(await states()).toEqual([[otherProject], []]);
    expect((await share(owner, 'all')).items).toHaveLength(2);
    expect(await states()).toEqual(['all', 'all']);
    await share(operator, [], two.url);
    await share(operator, [], two.url);
    expect(await states()).toEqual(['all', []]);
    const acts = await listAudit(bench.db, project, { withGlobal: false, subject: 'many', limit: 9 });
    expect(acts.map(({ actor, action }) => `${actor} ${action}`)).toEqual([
      'key_two instance.shared',
      'key_one instance.shared',
      'key_one instance.shared',
      'key_one instance.shared',
    ]);
  });

  it('shared with others is changed by its owner alone; one that is not, is not there', async () => {
    const [own, shared] = [await registered('closed'), await registered('open', [otherProject])];
    const acts = (name: string, endpoint: string) => [
      shareInstances(bench.ctx, stranger, { name, body: { shared_with: [], endpoint } }),
      drainInstance(bench.ctx, stranger, { name, body: { endpoint } }),
      bench.registry.heartbeat(otherProject, name, { endpoint }),
      bench.registry.deregister(stranger, name, { endpoint }),
    ];
    expect(await Promise.all(acts('closed', own.url).map(codeOf))).toEqual(Array(4).fill('not_found'));
    expect(await Promise.all(acts('open', shared.url).map(codeOf))).toEqual(Array(4).fill('forbidden'));
    expect(
      await codeOf(shareInstances(bench.ctx, stranger, { name: 'closed', body: { shared_with: [] } })),
    ).toBe('not_found');
  });
});

describe('an address', () => {
  it('belongs to one project', async () => {
    const instance = await registered('at.once', 'all');
    expect(await codeOf(bench.registry.register(otherProject, instance.registration()))).toBe('forbidden');
  });

  it.each([
    ['localhost', 'localhost'],
    ['[::ffff:127.0.0.1]', 'mapped'],
  ])('of another project is not called under another spelling: %s', async (host, name) => {
    const instance = await registered(name);
    const endpoint = instance.url.replace('127.0.0.1', host);
    const urls = { endpoint, spec_url: `${endpoint}/spec`, health_url: `${endpoint}/health` };
    const again = { ...instance.registration(), ...urls };
    const { endpoint: stored } = (await bench.registry.register(otherProject, again)).instance;
    expect(await bench.registry.vet((await bench.read(stored)).instance_id)).toBe('quarantined');
    expect((await bench.read(stored)).reason).toContain('instance of another project');
    expect(await bench.registry.vet((await bench.read(instance.url)).instance_id)).toBe('usable');
  });

  it('of the own project may be registered under several spellings', async () => {
    const instance = await registered('twice');
    const endpoint = instance.url.replace('127.0.0.1', 'localhost');
    const urls = { endpoint, spec_url: `${endpoint}/spec`, health_url: `${endpoint}/health` };
    await bench.registry.register(project, { ...instance.registration(), ...urls });
    expect(await bench.registry.vet((await bench.read(endpoint)).instance_id)).toBe('usable');
  });

  it('stays that of its project over a restart, and is free when it has been left for a while', async () => {
    const instance = await registered('left', 'all');
    await bench.registry.deregister(owner, 'left', { endpoint: instance.url });
    const taken = () => bench.registry.register(otherProject, instance.registration());
    expect(await codeOf(taken())).toBe('forbidden');
    await bench.age(instance.url, 3_600);
    const { owner_project, shared_with } = (await taken()).instance;
    expect([owner_project, shared_with]).toEqual([otherProject, []]);
  });
});
