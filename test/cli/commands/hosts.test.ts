import type { Host } from '@capstan/core/contracts/host-list';
import { expect, test } from 'vitest';
import { runCapstan } from '../../../src/cli/program.ts';
import { serve } from '../support/http-server.ts';
import { aShell } from '../support/shell.ts';

const instance = {
  name: 'image',
  endpoint: 'http://gpu:8000',
  state: 'up',
  in_flight: 1,
  max_concurrency: 1,
  takes: 1,
  slots: 2,
} as const;
const gpu: Host = {
  name: 'gpu-1',
  owner_project: 'prj_a',
  slots: 2,
  held: 1,
  memory_gb: 24,
  capabilities: ['image', 'voice'],
  instances: [instance, { ...instance, name: 'voice', in_flight: 0, slots: 4 }],
  warnings: ['voice at http://gpu:8000 registered 4 slots; the newest registration has 2'],
};
const drain = { by: 'key_1', reason: 'new driver', since: '2026-01-01T00:00:00.000Z', until: null };

/** @param looks the hosts of each list, one on a page */
async function serveHosts(looks: Host[][] = [[gpu]]) {
  const asked: string[] = [];
  const url = await serve(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    if (request.method === 'POST') {
      asked.push(`${request.url} ${body}`);
      const isDrained = request.url?.endsWith('/drain') === true;
      return void response.end(JSON.stringify(isDrained ? { ...gpu, drain } : gpu));
    }
    const at = Number(new URL(request.url ?? '', 'http://a.test').searchParams.get('cursor') ?? 0);
    const [hosts = []] = looks;
    const isLast = at + 1 >= hosts.length;
    if (isLast) looks.shift();
    response.end(
      JSON.stringify({ items: hosts.slice(at, at + 1), next_cursor: isLast ? null : `${at + 1}` }),
    );
  });
  return { url, asked };
}

test('shows hosts with what is held of them, and where registrations disagree', async () => {
  const { url } = await serveHosts();
  const { shell, seen } = aShell();
  await runCapstan(['hosts', '--url', url, '--key', 'k'], shell);
  const [head, first] = seen.stdout.split('\n');
  expect(head).toMatch(/HOST +HELD +MEMORY +INSTANCES +CAPABILITIES/);
  expect(first).toMatch(/gpu-1 +1\/2 +24 GB +2 +image voice/);
  expect(seen.stderr).toBe(`gpu-1: ${gpu.warnings[0]}\n`);
});

test('drains a host, with the reason, and waits until no call is open there', async () => {
  const others = { ...gpu, name: 'a-gpu', held: 0, instances: [] };
  const isGone = { ...gpu, instances: [] }; // with an open call on it
  const looks = [
    [others, isGone],
    [others, { ...isGone, held: 0 }],
  ];
  const { url, asked } = await serveHosts(looks);
  const { shell, seen } = aShell();
  await runCapstan(
    ['hosts', 'drain', 'gpu-1', '-r', 'new driver', '--wait', '--url', url, '--key', 'k'],
    shell,
  );
  expect(asked).toEqual(['/v1/hosts/gpu-1/drain {"reason":"new driver"}']);
  expect(seen.stdout).toContain('gpu-1: 1 of 2 slots held, drained by key_1: new driver; image up, voice up');
  expect([seen.stderr, looks]).toEqual(['no call is open\n', []]);
});

test('does not wait for a host that is not listed any more', async () => {
  const { url } = await serveHosts([[]]);
  const { shell, seen } = aShell();
  await runCapstan(['hosts', 'drain', 'gpu-1', '--wait', '--url', url, '--key', 'k'], shell);
  expect([seen.stderr, seen.exitCode]).toEqual([expect.stringContaining('gpu-1 is not listed any more'), 1]);
});

test.each(['undrain', 'warm'])('%s asks for it', async (act) => {
  const { url, asked } = await serveHosts();
  const { shell, seen } = aShell();
  await runCapstan(['hosts', act, 'gpu-1', '--url', url, '--key', 'k'], shell);
  expect([asked, seen.exitCode]).toEqual([[`/v1/hosts/gpu-1/${act} {}`], 0]);
});
