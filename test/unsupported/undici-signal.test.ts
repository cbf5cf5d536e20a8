import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Agent } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CancelSource } from '../../src/core/cancellation.ts';
import { toUndiciSignal } from '../../src/unsupported/undici-signal.ts';

let server: Server;
let origin: string;
const agent = new Agent();
beforeAll(async () => {
  server = createServer((request, response) => {
    if (request.url === '/answered') response.end('{}');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await agent.destroy();
  server.close();
});

test('a request that waits for its answer ends when the source is aborted, with its reason', async () => {
  const source = new CancelSource<Error>();
  const arrived = once(server, 'request');
  const request = agent.request({ origin, path: '/silent', method: 'GET', signal: toUndiciSignal(source) });
  await arrived;
  const reason = new Error('not wanted any more');
  source.abort(reason);
  await expect(request).rejects.toBe(reason);
});

test('a request whose signal was aborted before is not made', async () => {
  const source = new CancelSource<Error>();
  source.abort(new Error('too late'));
  const request = agent.request({ origin, path: '/answered', method: 'GET', signal: toUndiciSignal(source) });
  await expect(request).rejects.toThrow('too late');
});
