/** The sample of docs/up.md, as it is registered; and that the page and the schema know the same keys. */
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import Ajv from 'ajv/dist/2020.js';
import { expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { startFakeRouter } from '../../packages/capability/test/support/fake-router.ts';
import { aFolder } from '../../packages/capability/test/support/folders.ts';
import { createFleetSchema } from '../../src/api/documents/docs.ts';
import { type BoxEvent, createBox } from '../../src/box/box.ts';
import { type FleetPlan, readFleetPlan } from '../../src/box/fleet-plan.ts';
import { listCodeBlocks, readDocument, root } from '../docs/documents.ts';
import { waitFor } from '../support/wait.ts';

const file = `${root}examples/fleet/fleet.yaml`;
const hasPython = spawnSync('python3', ['--version']).status === 0;

function readSample(): FleetPlan {
  const reading = readFleetPlan({ file, environment: process.env, checks: true });
  if ('plan' in reading) return reading.plan;
  throw new Error(JSON.stringify(reading.faults));
}

async function planOf(text: string): Promise<FleetPlan> {
  const fleet = join(await aFolder(), 'fleet.yaml');
  await writeFile(fleet, text);
  const reading = readFleetPlan({ file: fleet, environment: {}, checks: false });
  if ('plan' in reading) return reading.plan;
  throw new Error(JSON.stringify(reading.faults));
}

async function open() {
  const router = await startFakeRouter();
  onTestFinished(router.close);
  const events: BoxEvent[] = [];
  const folder = await aFolder();
  const box = createBox({
    environment: { ...process.env, ROUTER_URL: router.url, ROUTER_TOKEN: 't', MEDIA_URL: `file://${folder}` },
    cacheDir: folder,
    stateDir: folder,
    report: (event) => events.push(event),
  });
  onTestFinished(() => box.stop());
  return { router, events, box };
}

it.runIf(hasPython)('registers each entry of the sample with the facts of the file', async () => {
  const { router, box, events } = await open();
  await box.change(readSample());
  await waitFor(
    'three registrations',
    () => router.said.length === 3 || events.some((one) => 'state' in one && one.state === 'gave_up'),
  );
  const host = { name: 'studio', slots: 4 };
  const bodies = new Map(router.said.map(({ body }) => [body.name, body]));
  expect(Object.fromEntries(bodies)).toMatchObject({
    lines: { tags: ['local'], max_concurrency: 2, host },
    shout: { tags: ['local'], max_concurrency: 1, host },
    'count-words': { tags: ['local'], cost_model: { type: 'per_call', rate_usd: 0.001 }, takes: 2, host },
  });
  const response = await fetch(`${bodies.get('lines')?.endpoint}/exec`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ text: 'a\nb\n' }),
  });
  expect(await response.json()).toEqual({ ok: true, output: { lines: 2 } });
  await box.stop();
  const left = router.said.filter(({ method }) => method === 'DELETE').map(({ path }) => path);
  expect(left.sort()).toEqual(['count-words', 'lines', 'shout'].map((name) => `/v1/capabilities/${name}`));
});

it.each([
  'sdk/python/capstan/lifecycle.py',
  'sdk/go/capstan.go',
  'packages/capability/src/lifecycle/registration.ts',
])('leaves out what the SDK of %s prints when it does not register itself', async (source) => {
  const [, line = ''] =
    /["'](.*register: not registered, ROUTER_URL.*?)["']/.exec(readDocument(source)) ?? [];
  const { events, box } = await open();
  await box.change(
    await planOf(`capabilities: {once: {program: [echo, "${line}"], max_restarts: 0, restart: never}}`),
  );
  await box.over;
  expect(line).toContain('serving only');
  expect(events.filter((one) => 'line' in one)).toEqual([]);
});

it.runIf(hasPython)('continues with the other wraps when one cannot start', async () => {
  const { router, box, events } = await open();
  const { instances, ...plan } = readSample();
  const [lines] = instances.filter(({ name }) => name === 'lines');
  if (lines?.source.kind !== 'wrap') throw new Error('no wrap');
  const text = lines.source.text.replace('argv: [wc', 'argv: [no-such-program');
  const broken = { ...lines, name: 'broken', source: { ...lines.source, text }, maxRestarts: 0 };
  await box.change({ ...plan, instances: [broken, lines] });
  await waitFor('one registration', () => router.said.length === 1);
  const ends = await waitFor('the end of the other', () =>
    events.filter((one) => 'state' in one && one.state === 'gave_up'),
  );
  expect(ends).toMatchObject([
    { name: 'broken', detail: 'no-such-program is missing and has to be installed by hand' },
  ]);
});

const aServer = `
  const health = { status: 'ok', name: process.env.NAME, version: '1', uptime_ms: 1 };
  const cost_model = { type: 'free', rate_usd: 0 };
  const spec = { ...health, description: 'd', input: {}, output: {}, cost_model };
  require('node:http').createServer((request, response) =>
    response.end(JSON.stringify(request.url === '/health' ? health : spec)),
  ).listen(process.env.PORT, process.env.HOST);`;

it('gives the ports that the file names first, and applies a changed listen', async () => {
  const { router, box } = await open();
  /** The address of the last registration of each. */
  const change = async (capabilities: object, listen: object = {}): Promise<Record<string, URL>> => {
    const before = router.said.length;
    const entries = Object.entries(capabilities).map(([name, own]) => [
      name,
      { program: [process.execPath, '-e', aServer], env: { NAME: name }, ...own },
    ]);
    await box.change(await planOf(JSON.stringify({ listen, capabilities: Object.fromEntries(entries) })));
    const added = () =>
      router.said
        .slice(before)
        .filter(({ method, path }) => method === 'POST' && path === '/v1/capabilities');
    await waitFor(
      'the registrations',
      () => new Set(added().map(({ body }) => body.name)).size === entries.length,
    );
    return Object.fromEntries(added().map(({ body }) => [String(body.name), new URL(String(body.endpoint))]));
  };
  const alone = await change({ a: {} });
  const port = Number(alone.a?.port);
  const both = await change({ a: {}, b: { port } });
  expect(both.b?.port).toBe(alone.a?.port);
  expect(both.a?.port).not.toBe(alone.a?.port);
  const moved = await change({ a: {}, b: { port } }, { advertise: 'http://box-1.lan' });
  expect(moved.a?.href).toBe(`http://box-1.lan:${both.a?.port}/`);
  expect(moved.b?.href).toBe(`http://box-1.lan:${port}/`);
});

it('shows the sample in the guide', () => {
  const [shown] = listCodeBlocks('docs/up.md');
  expect(parse(shown?.text ?? '')).toEqual(parse(readDocument('examples/fleet/fleet.yaml')));
});

const schema = createFleetSchema('http://capstan.test');

it('accepts the sample in an editor, and refuses what the file refuses', () => {
  const validate = new Ajv.Ajv2020({ strict: false }).compile(schema);
  const sample = parse(readDocument('examples/fleet/fleet.yaml')) as JsonObject;
  expect(validate(sample)).toBe(true);
  const wrong = [{ module: 'a', wrap: 'b' }, { slots: 1 }, { module: 'a', slot: 1 }];
  for (const a of wrong) expect([a, validate({ capabilities: { a } })]).toEqual([a, false]);
  expect(validate({ capabilities: {} })).toBe(false);
});

it('names every key in the guide', () => {
  const page = readDocument('docs/up.md');
  const keys = new Set<string>();
  JSON.stringify(schema, (_, value) => {
    if (value?.additionalProperties === false) for (const key of Object.keys(value.properties)) keys.add(key);
    return value;
  });
  expect(keys.size).toBeGreaterThan(20);
  expect([...keys].filter((key) => !new RegExp(`\\b${key}\\b`).test(page))).toEqual([]);
});
