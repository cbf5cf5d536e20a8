/** An instance that goes away while a call is open, on a connection that never says so. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { createCapabilityClient } from '../../src/clients/capability-http.ts';
import { CancelSource } from '../../src/core/cancellation.ts';
import { aGuard } from '../support/address-policy.ts';

const livenessIntervalMs = 40;

async function aServer(): Promise<{ server: Server; endpoint: string }> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { server, endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

function callOf(endpoint: string) {
  const client = createCapabilityClient({
    guard: aGuard(),
    answerLimitBytes: 1_000,
    livenessIntervalMs,
  });
  onTestFinished(() => client.close());
  return client.call({
    endpoint,
    input: {},
    idempotencyKey: 'key',
    attempt: 1,
    timeoutMs: 60_000,
    signal: new CancelSource(),
  });
}

it('is lost after three connects in vain, long before its timeout', async () => {
  const { server, endpoint } = await aServer();
  const outcome = callOf(endpoint);
  await once(server, 'request');
  const start = performance.now();
  server.close(); // the open connection stays
  expect(await outcome).toEqual({ kind: 'lost', message: 'the instance no longer accepts connections' });
  expect(performance.now() - start).toBeGreaterThan(2 * livenessIntervalMs - 10);
});

it('is not lost while it accepts connections, however long it says nothing', async () => {
  const { server, endpoint } = await aServer();
  let connects = 0;
  server.on('connection', () => {
    connects += 1;
  });
  const outcome = callOf(endpoint);
  const [, response] = await once(server, 'request');
  while (connects < 6) await once(server, 'connection');
  response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}');
  expect(await outcome).toEqual({ kind: 'answered', body: { ok: true } });
});
