import type { HookCreated } from '@capstan/core/contracts/hook';
import { expect, it } from 'vitest';
import { runCapstan } from '../../../src/cli/program.ts';
import { serve } from '../support/http-server.ts';
import { aShell } from '../support/shell.ts';

/** Runs a command against an API that gives this answer. @returns what was printed and asked */
async function capstan(words: readonly string[], answer: object) {
  const asked: unknown[] = [];
  const url = await serve(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    asked.push(`${request.method} ${request.url}`, ...(body === '' ? [] : [JSON.parse(body)]));
    response.end(JSON.stringify(answer));
  });
  const { shell, seen } = aShell();
  await runCapstan(['hooks', ...words, '--url', url, '--key', 'k'], shell);
  return { ...seen, asked };
}

const { secret, ...hook }: HookCreated = {
  hook_id: 'hok_1',
  name: 'on-push',
  pipeline: 'build',
  signature: 'github',
  job: '{{ body }}',
  labels: { team: 'film' },
  enabled: true,
  url: '/v1/hooks/on-push?project_id=prj_1',
  refused: { count: 2, at: '2026-01-01T00:00:00.000Z', reason: 'there is no X-Hub-Signature-256' },
  former_until: null,
  created_by: 'key_1',
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
  secret: 'whsec_c2VjcmV0',
};

it('adds a hook with its templates, and prints the url and the secret', async () => {
  const words = ['add', 'on-push', 'build', '--signature', 'github', '--job', '{"a": "{{ body.a }}"}'];
  const { stdout, asked } = await capstan([...words, '--once-per', '{{ body.id }}'], { ...hook, secret });
  expect(asked).toEqual([
    'POST /v1/hooks',
    {
      name: 'on-push',
      pipeline: 'build',
      signature: 'github',
      job: { a: '{{ body.a }}' },
      key: '{{ body.id }}',
    },
  ]);
  expect(stdout).toContain('url    /v1/hooks/on-push?project_id=prj_1');
  expect(stdout).toContain('secret whsec_c2VjcmV0');
});

it('changes what is given, and keeps the other settings', async () => {
  const { stdout, asked } = await capstan(['set', 'on-push', '--disable', '--alias', 'live'], hook);
  expect(asked).toEqual([
    'GET /v1/hooks/on-push',
    'PUT /v1/hooks/on-push',
    {
      pipeline: 'build',
      alias: 'live',
      signature: 'github',
      job: '{{ body }}',
      labels: { team: 'film' },
      enabled: false,
    },
  ]);
  expect(stdout).toContain('refused 2 requests, the latest at 2026-01-01T00:00:00.000Z: there is no');
});

it('sends a delivery again, and prints its run', async () => {
  const receipt = { delivery_id: 'rcv_2', outcome: 'started', run_id: 'run_1', reason: null };
  const { stdout, asked } = await capstan(['replay', 'on-push', 'rcv_1'], receipt);
  expect(asked[0]).toBe('POST /v1/hooks/on-push/deliveries/rcv_1/replay');
  expect(stdout).toContain('started  run_1');
});
