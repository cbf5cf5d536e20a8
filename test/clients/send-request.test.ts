import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CancelSource } from '@capstan/core/cancellation';
import { Agent, Pool } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type InstanceAnswer, sendRequest } from '../../src/clients/send-request.ts';

const answers: Record<string, (response: ServerResponse) => void> = {
  '/silent': () => undefined,
  '/early': (response) => {
    response.writeEarlyHints({ link: '</style.css>; rel=preload' });
    response.end('late');
  },
  '/chunks': (response) => {
    response.write('one ');
    response.write('two ');
    response.end('three');
  },
  '/endless': (response) => {
    const more = (): void => {
      while (!response.destroyed && response.write('x'.repeat(1_000)));
      response.once('drain', more);
    };
    more();
  },
  '/cut': (response) => {
    response.writeHead(200, { 'content-length': '10' });
    response.write('half', () => response.destroy());
  },
};

let server: Server;
let origin: string;
const agent = new Agent();
beforeAll(async () => {
  server = createServer((request, response) => answers[request.url ?? '']?.(response));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await agent.destroy();
  server.close();
});

function send(path: string, { limit = 100, signal = new CancelSource() } = {}): Promise<InstanceAnswer> {
  return sendRequest(agent, { origin, path, method: 'GET' }, { signal, limitOf: () => limit });
}

test.each(['/chunks', '/early'])('%s is read whole', async (path) => {
  const { status, body } = await send(path);
  expect([status, body?.toString()]).toEqual([200, path === '/chunks' ? 'one two three' : 'late']);
});

test.each([
  { path: '/chunks', limit: 12 },
  { path: '/chunks', limit: 0 },
  { path: '/endless', limit: 5_000 },
])('$path is not read past $limit bytes', async ({ path, limit }) => {
  expect(await send(path, { limit })).toMatchObject({ status: 200, body: null });
});

test('an answer that is cut off is an error', async () => {
  await expect(send('/cut')).rejects.toThrow();
});

test('a request that waits for its answer ends with its signal', async () => {
  const signal = new CancelSource();
  const arrived = once(server, 'request');
  const sent = send('/silent', { signal });
  await arrived;
  signal.abort('cancelled');
  await expect(sent).rejects.toThrow('not wanted any more');
});

test('a request whose signal was aborted before is not sent, nor one that still waits for a connection', async () => {
  const pool = new Pool(origin, { connections: 1, pipelining: 1 });
  const paths: (string | undefined)[] = [];
  server.on('request', ({ url }) => paths.push(url));
  const [late, first, second] = [new CancelSource(), new CancelSource(), new CancelSource()];
  late.abort('cancelled');
  await expect(send('/chunks', { signal: late })).rejects.toThrow('not wanted any more');
  const options = { limitOf: () => 100 };
  const taken = sendRequest(pool, { path: '/silent', method: 'GET' }, { ...options, signal: first });
  await once(server, 'request');
  const waiting = sendRequest(pool, { path: '/chunks', method: 'GET' }, { ...options, signal: second });
  second.abort('cancelled');
  await expect(waiting).rejects.toThrow('not wanted any more');
  first.abort('cancelled');
  await expect(taken).rejects.toThrow('not wanted any more');
  const next = await sendRequest(
    pool,
    { path: '/early', method: 'GET' },
    { ...options, signal: new CancelSource() },
  );
  expect([next.body?.toString(), paths]).toEqual(['late', ['/silent', '/early']]);
  await pool.close();
});
