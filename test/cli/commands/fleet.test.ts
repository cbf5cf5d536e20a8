import type { Instance } from '@capstan/core/contracts/capability';
import { expect, test } from 'vitest';
import { runCapstan } from '../../../src/cli/program.ts';
import { serve } from '../support/http-server.ts';
import { aShell } from '../support/shell.ts';

const at = '2026-01-01T00:00:00.000Z';
const busy: Instance = {
  name: 'upscale',
  version: '1.0.0',
  endpoint: 'http://gpu:8000',
  owner_project: 'prj_a',
  shared_with: [],
  spec_url: 'http://gpu:8000/spec',
  health_url: 'http://gpu:8000/health',
  cost_model: { type: 'per_second', rate_usd: 0.0004 },
  tags: ['gpu', 'a'],
  max_concurrency: 4,
  state: 'up',
  generation: 1,
  in_flight: 2,
  queue_depth: 0,
  duration_ms: 1_500,
  success_rate: 0.9,
  recent_calls: { succeeded: 32.4, failed: 0 },
  breaker: { state: 'closed', until: null },
  settle: 'computed',
  spec_digest: null,
  registered_at: at,
  last_heartbeat_at: at,
  expires_at: at,
} as Instance;
const quarantined: Instance = {
  ...busy,
  endpoint: 'http://desk:8000',
  state: 'quarantined',
  reason: 'its /spec does not answer',
  in_flight: 0,
  recent_calls: { succeeded: 0, failed: 0 },
};

/** Answers the two questions of the command; \`isAway\`: from then on, none. */
async function serveFleet(instances: readonly Instance[] = [busy, quarantined]) {
  const state = { isAway: false, asked: 0 };
  const url = await serve((request, response) => {
    state.asked++;
    if (state.isAway) return void response.destroy();
    const sums = { usd: 0.25, calls: 1, tokens: 0 };
    const points = [[at, 0.25, 1, 0]];
    const isByInstance = request.url?.includes('by=endpoint&and=capability') === true;
    const group = { name: 'http://gpu:8000', ...(isByInstance ? { and: 'upscale' } : {}) };
    const series = [{ ...group, ...sums, points }];
    const days = {
      from: '2026-01-01',
      to: '2026-01-01',
      timezone: 'UTC',
      bucket: 'day',
      starts: [at],
      until: at,
    };
    const costs = { ...days, ...sums, series, daily_limit_usd: 0 };
    const list = {
      items: [{ name: 'upscale', versions: ['1.0.0'], description: null, instances }],
      next_cursor: null,
    };
    response.end(JSON.stringify(request.url?.startsWith('/v1/costs') === true ? costs : list));
  });
  return { url, state };
}

test('shows what each instance does, what it cost today, and why it gets no calls', async () => {
  const { url } = await serveFleet();
  const { shell, seen } = aShell();
  await runCapstan(['fleet', '--url', url, '--key', 'k'], shell);
  const [head, first, second] = seen.stdout.split('\n');
  expect(head).toMatch(
    /CAPABILITY +STATE +BUSY +PRICE +QUEUE +SPEED +SUCCEEDED +TODAY +TAGS +ENDPOINT +REASON/,
  );
  expect(first).toMatch(
    /upscale@1.0.0 .*up +▮▮▯▯ 2\/4 +\$0.0004\/s +0 +1.5s +100 % +\$0.25 +gpu a +http:\/\/gpu:8000/,
  );
  expect(second).toMatch(
    /quarantined +▯▯▯▯ 0\/4 +\$0.0004\/s +0 +1.5s +\$0 +gpu a +http:\/\/desk:8000 +its \/spec does not answer/,
  );
  expect(seen.stderr).toBe('2 instances, 1 up, 1 busy; $0.25 today\n');
});

test('shows no costs of another capability that the address has served today', async () => {
  const { url } = await serveFleet([{ ...busy, name: 'caption', cost_model: { type: 'free', rate_usd: 0 } }]);
  const { shell, seen } = aShell();
  await runCapstan(['fleet', '--url', url, '--key', 'k'], shell);
  expect(seen.stdout).toMatch(/caption@1.0.0 .* \$0 +gpu a +http:\/\/gpu:8000/);
  expect(seen.stderr).toBe('1 instances, 1 up, 1 busy; $0.25 today\n');
});

test('watched on a terminal, keeps the last picture and reports the lost contact, until Ctrl-C', async () => {
  const { url, state } = await serveFleet();
  const { shell, seen } = aShell({ columns: 160 });
  const interrupt: { now: () => void } = { now: () => undefined };
  const watching = runCapstan(['fleet', '--watch', '--url', url, '--key', 'k'], {
    ...shell,
    onInterrupt: (act) => {
      interrupt.now = act;
      return () => undefined;
    },
  });
  await expect.poll(() => seen.stdout, { timeout: 60_000 }).toContain('http://gpu:8000');
  state.isAway = true;
  await expect.poll(() => seen.stdout, { timeout: 60_000 }).toContain('contact lost, trying again');
  interrupt.now();
  await watching;
  expect(seen.stdout.lastIndexOf('http://desk:8000')).toBeGreaterThan(0);
});

/** A fleet whose drained instances have one open call for two questions. */
async function serveDrains() {
  const asked: string[] = [];
  let open = 2;
  const url = await serve(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const path = request.url ?? '';
    if (request.method === 'POST') asked.push(`${path} ${body}`);
    const drain = { by: 'key_1', reason: 'new driver', since: at, until: null };
    const changed = { ...busy, state: 'draining', drain, ...JSON.parse(body || '{}') };
    const instances = [busy, { ...quarantined, endpoint: busy.endpoint, name: 'scale' }, quarantined];
    const item = (name: string) => ({ name, versions: ['1.0.0'], description: null });
    const items = ['upscale', 'scale'].map((name) => ({
      ...item(name),
      instances: instances.filter((one) => one.name === name),
    }));
    const detail = { name: 'upscale', specs: [], instances: [{ ...busy, in_flight: Math.max(0, open--) }] };
    if (request.method === 'POST') response.end(JSON.stringify(changed));
    else response.end(JSON.stringify(path.includes('?') ? { items, next_cursor: null } : detail));
  });
  return { url, asked };
}

test('drains every capability at an endpoint, with the reason, and waits until no call is open', async () => {
  const { url, asked } = await serveDrains();
  const { shell, seen } = aShell();
  const words = ['fleet', 'drain', 'http://gpu:8000/', '-r', 'new driver', '--wait'];
  await runCapstan([...words, '--url', url, '--key', 'k'], shell);
  const body = JSON.stringify({ endpoint: 'http://gpu:8000', reason: 'new driver' });
  expect(asked).toEqual([`/v1/capabilities/upscale/drain ${body}`, `/v1/capabilities/scale/drain ${body}`]);
  expect(seen.stdout).toContain(
    'draining  upscale http://gpu:8000, 2 calls open, drained by key_1: new driver',
  );
  expect(seen.stderr).toBe('no call is open\n');
});

test.each([
  [['undrain', 'scale'], ['/v1/capabilities/scale/undrain {"endpoint":"http://gpu:8000"}'], 0],
  [
    ['undrain', 'http://gone:1', '--capability', 'upscale'],
    ['/v1/capabilities/upscale/undrain {"endpoint":"http://gone:1"}'],
    0,
  ],
  [['warm', 'http://desk:8000'], ['/v1/capabilities/upscale/warm {"endpoint":"http://desk:8000"}'], 0],
  [['drain', 'upscale'], [], 1],
  [['drain', 'http://nowhere'], [], 1],
  [['drain', 'scale', '--until', 'soon'], [], 1],
])('fleet %j asks %j', async (words, requests, exitCode) => {
  const { url, asked } = await serveDrains();
  const { shell, seen } = aShell();
  await runCapstan(['fleet', ...words, '--url', url, '--key', 'k'], shell);
  expect([asked, seen.exitCode]).toEqual([requests, exitCode]);
});

test.each([
  [
    'fleet drain scale --until yesterday',
    'Write a duration such as 2h (from now), a day such as 2026-01-31, or',
  ],
  ['hosts drain box-h --until=-5m', 'Write a duration such as 2h (from now), a day such as 2026-01-31, or'],
  ['audit export --from soon', 'Write a day such as 2026-01-31, or a moment such as 2026-01-31T08:00:00Z.'],
])('%s names what is allowed', async (words, allowed) => {
  const { shell, seen } = aShell();
  await runCapstan([...words.split(' '), '--url', 'http://127.0.0.1:1', '--key', 'k'], shell);
  expect(seen.stderr).toContain(allowed);
});

test('shows what instances have loaded, where calls need something loaded', async () => {
  const { url } = await serveFleet([
    { ...busy, affinity: '{{ input.model }}', resident: ['sdxl', 'flux'] },
    quarantined,
  ]);
  const { shell, seen } = aShell();
  await runCapstan(['fleet', '--url', url, '--key', 'k'], shell);
  const [head, first] = seen.stdout.split('\n');
  expect(head).toMatch(/ENDPOINT +LOADED +HOST|ENDPOINT +LOADED +REASON/);
  expect(first).toMatch(/http:\/\/gpu:8000 +sdxl flux/);
});

test('shows the latest keys of an instance, short, and how many others it has loaded', async () => {
  const resident = ['#60f8b1ed3a6b2da59fde802034cfe898', 'sdxl', 'flux', 'a', 'b', 'c'];
  const { url } = await serveFleet([{ ...busy, affinity: '{{ input.messages }}', resident }]);
  const { shell, seen } = aShell();
  await runCapstan(['fleet', '--url', url, '--key', 'k'], shell);
  expect(seen.stdout).toMatch(/http:\/\/gpu:8000 +#60f8b1ed3a6b2d… sdxl flux \+3 more\n/);
});
