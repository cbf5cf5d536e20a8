/** Calls that are left open by 202, and results that are sent later, over real HTTP. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CallFailure, defineCapability, later, sendResult } from '@capstan/capability';
import { expect, test } from 'vitest';

const capability = defineCapability({
  name: 'later',
  version: '1.0.0',
  description: 'Answers later.',
  input: { type: 'object' },
  output: { type: 'object' },
  cost_model: { type: 'free', rate_usd: 0 },
  tags: [],
  async: { slot: 'freed' },
  exec: (_, context) => later(context),
});

test('the spec declares it', () => {
  expect(capability.spec.async).toEqual({ slot: 'freed' });
});

test('a caller without an address is refused', async () => {
  const context = {} as Parameters<typeof capability.exec>[1];
  await expect(capability.exec({}, context)).rejects.toMatchObject({ status: 422, code: 'callback_missing' });
  const callbackUrl = 'http://capstan.test/v1/callbacks/x';
  await expect(capability.exec({}, { ...context, callbackUrl })).rejects.toMatchObject({
    name: 'AnswerLater',
  });
});

test.each([
  [204, 'accepted'],
  [409, 'again'],
  [410, 'late'],
  [404, 'unknown'],
] as const)('HTTP %i is read as %s, after a failure that passes', async (status, receipt) => {
  const bodies: unknown[] = [];
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    bodies.push(JSON.parse(text));
    response.writeHead(bodies.length === 1 ? 503 : status).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/callbacks/x`;
  expect(await sendResult(url, { text: 'done' })).toBe(receipt);
  expect(bodies).toEqual(Array(2).fill({ ok: true, output: { text: 'done' } }));
  bodies.length = 1;
  await sendResult(url, new CallFailure(502, 'gone', { code: 'gpu_gone', report: { cost_usd: 0.1 } }));
  expect(bodies[1]).toEqual({ ok: false, error: 'gone', status: 502, error_code: 'gpu_gone', cost_usd: 0.1 });
  server.closeAllConnections();
  server.close();
});
