import type { CapabilitySpec } from '@capstan/core/contracts/capability';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { waitFor } from '../../support/wait.ts';
import { answerJson, aSpec, type FakeInstance } from '../../use-cases/registry/fake-instance.ts';
import {
  openRegistryBench,
  owner,
  project,
  type RegistryBench,
} from '../../use-cases/registry/registry-bench.ts';

let bench: RegistryBench;
beforeAll(async () => {
  bench = await openRegistryBench();
});
afterEach(() => bench.clear());
afterAll(() => bench.close());

async function registerVetted(spec?: CapabilitySpec): Promise<{ instance: FakeInstance; id: string }> {
  const instance = await bench.start(spec);
  await bench.registry.register(project, instance.registration());
  const id = (await bench.read(instance.url)).instance_id;
  await bench.registry.vet(id);
  return { instance, id };
}

async function stateOf({ url }: FakeInstance): Promise<string> {
  return (await bench.read(url)).state;
}

/**
 * Probes as maintenance does, every second of a clock that is moved by hand, until the instance is in the state.
 * @returns the states that it was found in
 */
async function probeUntil(instance: FakeInstance, state: string): Promise<string[]> {
  const seen = [await stateOf(instance)];
  while (seen.at(-1) !== state && seen.length < 60) {
    await bench.registry.probeDue();
    seen.push(await stateOf(instance));
    await bench.age(instance.url, 1);
  }
  return seen;
}

describe('a refused connection', () => {
  it('takes a dead instance from suspect to down by three probes, a second apart', async () => {
    const { instance, id } = await registerVetted();
    await instance.die();
    await bench.registry.reportRefused(id);
    expect(await probeUntil(instance, 'down')).toEqual(['suspect', 'suspect', 'suspect', 'down']);
    expect(await bench.read(instance.url)).toMatchObject({ failed_probes: 3, spec_digest: null });
    expect((await bench.read(instance.url)).reason).toMatch(/ECONNREFUSED/);
  });

  it('changes nothing for long when the instance lives', async () => {
    const { instance, id } = await registerVetted();
    const before = instance.requests.length;
    await bench.registry.reportRefused(id);
    expect(await stateOf(instance)).toBe('suspect');
    await bench.registry.probeDue();
    expect(await bench.read(instance.url)).toMatchObject({ state: 'up', reason: null, next_probe_at: null });
    expect(instance.requests.slice(before)).toEqual(['GET /health']);
  });

  it('is found out again after the instance has come back to its port', async () => {
    const { instance, id } = await registerVetted();
    await instance.die();
    await bench.registry.reportRefused(id);
    await probeUntil(instance, 'down');
    await instance.rise();
    await bench.age(instance.url, 15);
    await bench.registry.probeDue();
    const row = await bench.read(instance.url);
    expect(row).toMatchObject({ state: 'up', failed_probes: 0 });
    expect(row.spec_digest).not.toBeNull();
  });
});

describe('silence', () => {
  it('makes an instance suspect after 75 s, and an answered probe up again', async () => {
    const { instance } = await registerVetted();
    await bench.age(instance.url, 60);
    expect(await bench.registry.probeDue()).toBe(0);
    expect(await stateOf(instance)).toBe('up');
    await bench.age(instance.url, 16);
    expect(await bench.registry.probeDue()).toBe(1);
    expect(await stateOf(instance)).toBe('up');
    expect(await bench.registry.probeDue()).toBe(0);
    await bench.age(instance.url, 76);
    expect(await bench.registry.probeDue()).toBe(1);
  });

  it('of most instances at once is our fault and takes none of them out', async () => {
    const fleet = await Promise.all(Array.from({ length: 6 }, () => registerVetted()));
    const [answering, ...mute] = fleet.map(({ instance }) => instance);
    for (const instance of mute) instance.answer('/health', () => undefined);
    for (const { instance } of fleet) await bench.age(instance.url, 80);
    expect(await bench.impatient(3_000).probeDue()).toBe(6);
    expect(await stateOf(answering as FakeInstance)).toBe('up');
    for (const instance of mute) {
      expect(await bench.read(instance.url)).toMatchObject({ state: 'suspect', failed_probes: 0 });
    }
  });
});

describe('vetting', () => {
  it.each<[string, (instance: FakeInstance) => void, RegExp]>([
    [
      'another name in /health',
      (instance) =>
        instance.answer('/health', (_, response) =>
          answerJson(response, { status: 'ok', name: 'other', version: '1.0.0', uptime_ms: 1 }),
        ),
      /^\/health says other 1\.0\.0, registered is concat 1\.0\.0$/,
    ],
    [
      'another version in /spec',
      (instance) =>
        instance.answer('/spec', (_, response) => answerJson(response, aSpec({ version: '2.0.0' }))),
      /^\/spec says concat 2\.0\.0, registered is concat 1\.0\.0$/,
    ],
    [
      'a spec that is HTML',
      (instance) =>
        instance.answer('/spec', (_, response) => {
          response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Not found</h1>');
        }),
      /^\/spec: content type "text\/html"/,
    ],
    [
      'a spec without a schema',
      (instance) =>
        instance.answer('/spec', (_, response) => answerJson(response, { ...aSpec(), input: 'any' })),
      /^\/spec: input: /,
    ],
    [
      'a schema that is none',
      (instance) =>
        instance.answer('/spec', (_, response) => answerJson(response, aSpec({ input: { type: 'objekt' } }))),
      /^\/spec: its input schema cannot be used: .*type/,
    ],
    [
      'a schema that reaches out',
      (instance) =>
        instance.answer('/spec', (_, response) =>
          answerJson(response, aSpec({ output: { $ref: 'http://10.0.0.1/steal' } })),
        ),
      /^\/spec: its output schema cannot be used: .*leaves the document/,
    ],
    [
      'a redirect',
      (instance) =>
        instance.answer('/health', (_, response) => {
          response.writeHead(302, { location: 'http://169.254.169.254/' }).end();
        }),
      /^\/health: HTTP 302, a redirect/,
    ],
  ])('quarantines %s and shows the reason', async (_, spoil, reason) => {
    const instance = await bench.start();
    spoil(instance);
    await bench.registry.register(project, instance.registration());
    const { instance_id } = await bench.read(instance.url);
    expect(await bench.registry.vet(instance_id)).toBe('quarantined');
    const [shown] = (await bench.registry.get('concat')).instances;
    expect(shown?.state).toBe('quarantined');
    expect(shown?.reason).toMatch(reason);
  });

  it('lets a matching probe, but no heartbeat, end a quarantine', async () => {
    const { instance, id } = await registerVetted();
    instance.answer('/spec', (_, response) => response.writeHead(404).end());
    expect(await bench.registry.vet(id)).toBe('quarantined');
    instance.answer('/spec', null);
    await bench.registry.heartbeat(project, 'concat', { endpoint: instance.url });
    expect(await stateOf(instance)).toBe('quarantined');
    await bench.age(instance.url, 60);
    await bench.registry.probeDue();
    const row = await bench.read(instance.url);
    expect(row).toMatchObject({ state: 'up', reason: null });
    expect(row.spec_digest).not.toBeNull();
  });

  it('holds one spec per version while an instance of it is up; the price may differ', async () => {
    const first = await registerVetted();
    const cheap = await registerVetted(aSpec({ cost_model: { type: 'per_call', rate_usd: 1 } }));
    const rival = await registerVetted(aSpec({ output: { type: 'object' } }));
    expect((await bench.read(cheap.instance.url)).state).toBe('up');
    expect((await bench.read(rival.instance.url)).reason).toContain(
      `differs from that of ${first.instance.url}`,
    );
    await bench.registry.deregister(owner, 'concat', { endpoint: first.instance.url });
    await bench.registry.deregister(owner, 'concat', { endpoint: cheap.instance.url });
    expect(await bench.registry.vet(rival.id)).toBe('usable');
  });

  it('lets only one of two different specs through when both are vetted at once', async () => {
    const instances = [await bench.start(), await bench.start(aSpec({ output: { type: 'object' } }))];
    for (const instance of instances) await bench.registry.register(project, instance.registration());
    const ids = await Promise.all(instances.map(async ({ url }) => (await bench.read(url)).instance_id));
    const verdicts = await Promise.all(ids.map((id) => bench.registry.vet(id)));
    expect(verdicts.sort()).toEqual(['quarantined', 'usable']);
  });

  it('returns unreachable, and suspects an instance that does not listen', async () => {
    const instance = await bench.start();
    await instance.die();
    await bench.registry.register(project, instance.registration());
    expect(await bench.registry.vet((await bench.read(instance.url)).instance_id)).toBe('unreachable');
    expect(await stateOf(instance)).toBe('suspect');
  });

  it('does not believe a probe that began before a newer registration', async () => {
    const { instance, id } = await registerVetted();
    let answerLate = (): void => undefined;
    instance.answer('/health', (_, response) => {
      answerLate = () =>
        answerJson(response, { status: 'ok', name: 'other', version: '1.0.0', uptime_ms: 1 });
    });
    const before = instance.requests.length;
    const vetting = bench.registry.vet(id);
    await waitFor('the probe is under way', () => instance.requests.length > before);
    await bench.registry.register(project, instance.registration());
    instance.answer('/health', null);
    answerLate();
    expect(await vetting).toBe('usable');
    const row = await bench.read(instance.url);
    expect(row).toMatchObject({ state: 'up', next_probe_at: null });
    expect(row.spec_digest).not.toBeNull();
  });

  it('takes 503 and an unhealthy status for illness, not for another capability', async () => {
    const { instance, id } = await registerVetted();
    instance.answer('/health', (_, response) => response.writeHead(503).end());
    expect(await bench.registry.vet(id)).toBe('unreachable');
    expect(await bench.read(instance.url)).toMatchObject({ state: 'suspect', reason: '/health: HTTP 503' });
  });
});
