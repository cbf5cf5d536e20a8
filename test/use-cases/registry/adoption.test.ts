import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { CapabilitySpec } from '@capstan/core/contracts/capability';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { waitFor } from '../../support/wait.ts';
import { answerJson, aSpec, type FakeInstance } from './fake-instance.ts';
import { openRegistryBench, otherProject, owner, project, type RegistryBench } from './registry-bench.ts';

let bench: RegistryBench;
beforeAll(async () => {
  bench = await openRegistryBench();
});
afterAll(() => bench.close());

function namesAt({ url }: FakeInstance): Promise<string[]> {
  return bench.db('instance').where({ endpoint: url }).orderBy('name').pluck('name');
}

describe('a heartbeat of an unknown instance', () => {
  it('registers the facts of its /spec and /health', async () => {
    const spec = aSpec({ name: 'lost', cost_model: { type: 'per_second', rate_usd: 0.01 } });
    const instance = await bench.start(spec);
    const beat = () =>
      bench.registry.heartbeat(project, 'lost', { endpoint: `${instance.url}/`, queue_depth: 3 });
    expect(await beat()).toEqual({ state: 'up', revived: false, adopted: true, heartbeat_interval_s: 60 });
    expect(await bench.read(instance.url)).toMatchObject({
      owner_project: project,
      name: 'lost',
      version: '1.0.0',
      endpoint: instance.url,
      tags: [],
      spec_url: `${instance.url}/spec`,
      health_url: `${instance.url}/health`,
      queue_depth: 3,
      cost_type: 'per_second',
      max_concurrency: 1,
      settle: 'computed',
      generation: 1,
    });
    await waitFor('its spec is vetted', async () => (await bench.read(instance.url)).spec_digest !== null);
    expect(await beat()).toEqual({ state: 'up', revived: false, heartbeat_interval_s: 60 });
    const foreign = bench.registry.heartbeat(otherProject, 'lost', { endpoint: instance.url });
    await expect(foreign).rejects.toMatchObject({ code: 'not_found' });
  });

  it.each<[string, Partial<CapabilitySpec>, (instance: FakeInstance) => void, RegExp]>([
    ['another name', { name: 'stranger' }, () => undefined, /did not register it: \/spec says stranger$/],
    [
      'another version in /health',
      {},
      (instance) =>
        instance.answer('/health', (_, response) =>
          answerJson(response, { status: 'ok', name: 'asked', version: '2.0.0', uptime_ms: 1 }),
        ),
      /\/health says asked 2\.0\.0/,
    ],
    [
      'no spec',
      {},
      (instance) => instance.answer('/spec', (_, response) => response.writeHead(404).end()),
      /\/spec: HTTP 404/,
    ],
    ['a free price with a rate', { cost_model: { type: 'free', rate_usd: 1 } }, () => undefined, /rate_usd/],
  ])('with %s answers 404 with the reason', async (_, changes, spoil, reason) => {
    const instance = await bench.start(aSpec({ name: 'asked', ...changes }));
    spoil(instance);
    const refused = bench.registry.heartbeat(project, 'asked', { endpoint: instance.url });
    await expect(refused).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringMatching(reason),
    });
    expect(await namesAt(instance)).toEqual([]);
  });

  it('at an address where no instance may be is refused without a look', async () => {
    const refused = bench.registry.heartbeat(project, 'any', { endpoint: 'http://169.254.169.254' });
    await expect(refused).rejects.toMatchObject({ code: 'request_invalid' });
  });

  it('does not bring back who has deregistered', async () => {
    const instance = await bench.start(aSpec({ name: 'left' }));
    await bench.registry.register(project, instance.registration());
    await bench.registry.deregister(owner, 'left', { endpoint: instance.url });
    const answer = await bench.registry.heartbeat(project, 'left', { endpoint: instance.url });
    expect(answer).toEqual({ state: 'deregistered', revived: false, heartbeat_interval_s: 60 });
  });

  it('sent many times at once is looked at once', async () => {
    const instance = await bench.start(aSpec({ name: 'eager' }));
    let release = (): void => undefined;
    instance.answer('/spec', (_, response) => {
      release = () => answerJson(response, aSpec({ name: 'eager' }));
    });
    const beats = Array.from({ length: 12 }, () =>
      bench.registry.heartbeat(project, 'eager', { endpoint: instance.url }),
    );
    // Each has found nothing in the database, and so waits for the spec.
    await waitFor('all wait for the spec', () => instance.requests.length > 0 && bench.isIdle());
    instance.answer('/spec', null);
    release();
    const answers = await Promise.all(beats);
    expect(answers.map(({ state }) => state)).toEqual(Array.from({ length: 12 }, () => 'up'));
    expect(await namesAt(instance)).toEqual(['eager']);
    await waitFor('its spec is vetted', async () => (await bench.read(instance.url)).spec_digest !== null);
    const looks = instance.requests.filter((request) => request === 'GET /spec');
    expect(looks).toHaveLength(2); // the adoption's and the vetting's
  });

  it('waits for its next chance when 20 others are being looked at', async () => {
    const waiting = new Set<string>();
    const server = createServer(({ url = '' }) => void waiting.add(url));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const beat = (at: number) => bench.registry.heartbeat(project, 'slow', { endpoint: `${base}/${at}` });
    const slow = Promise.allSettled(Array.from({ length: 20 }, (_, at) => beat(at)));
    await waitFor('twenty are asked', () => waiting.size === 20);
    await expect(beat(20)).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringContaining('20 others'),
    });
    expect(waiting.size).toBe(20);
    server.closeAllConnections();
    await slow;
    server.close();
  });
});

describe('a port that another capability took over', () => {
  it.each(['heartbeat', 'registration'])('is found out at the next probe after a %s', async (way) => {
    const instance = await bench.start(aSpec({ name: `old.${way}` }));
    await bench.registry.register(project, instance.registration());
    await bench.registry.vet((await bench.read(instance.url)).instance_id);
    const name = `new.${way}`;
    instance.answer('/spec', (_, response) => answerJson(response, aSpec({ name })));
    instance.answer('/health', (_, response) =>
      answerJson(response, { status: 'ok', name, version: '1.0.0', uptime_ms: 1 }),
    );
    if (way === 'registration') await bench.registry.register(project, instance.registration({ name }));
    else await bench.registry.heartbeat(project, name, { endpoint: instance.url });
    await bench.registry.probeDue();
    const [old] = (await bench.registry.get(`old.${way}`)).instances;
    expect([old?.state, old?.reason]).toEqual([
      'quarantined',
      `/health says ${name} 1.0.0, registered is old.${way} 1.0.0`,
    ]);
    expect((await bench.registry.get(name)).instances[0]?.state).toBe('up');
  });
});
