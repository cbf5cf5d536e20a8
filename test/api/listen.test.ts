import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import type { Run } from '@capstan/core/contracts/run';
import { afterEach, describe, expect, test } from 'vitest';
import { listen } from '../../src/api/listen.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { anInstance } from '../support/factories.ts';

let api: TestApi | undefined;
afterEach(async () => {
  await api?.close();
  api = undefined;
});

const definition = { pipeline: 'p', version: '1', steps: [{ id: 'a', capability: 'x' }] };

describe('a server that closes', () => {
  test('lets a waiting request answer, ends streams, and takes no more', async () => {
    api = await startTestApi();
    const { url, apiKey, call } = api;
    await anInstance(api.db, { name: 'x' });
    const run = (await (await call('/v1/runs', { body: { definition } })).json()) as Run;
    const stream = await fetch(`${url}/v1/runs/${run.run_id}/events`, {
      headers: { authorization: `Bearer ${apiKey}`, accept: 'text/event-stream' },
    });
    const reader = (stream.body as ReadableStream<Uint8Array>).getReader();
    let received = '';
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      received += Buffer.from(part.value).toString();
      if (received.includes('event: run.queued')) break;
    }
    const waiting = call('/v1/runs', { body: { definition }, headers: { prefer: 'wait=60' } });
    await api.waitForRuns(2);
    const closed = api.closeServer();
    const answer = await waiting;
    expect([answer.status, answer.headers.get('connection')]).toEqual([202, 'close']);
    for (let part = await reader.read(); !part.done; ) part = await reader.read(); // it ends, and is not cut
    expect(received).toContain('event: run.queued');
    await closed;
    await expect(call('/livez')).rejects.toThrow();
  });

  // Anything else that would close it does so after two minutes.
  test('does not wait for a connection that never carried a request', { timeout: 60_000 }, async () => {
    api = await startTestApi({ SHUTDOWN_GRACE_MS: 600_000 });
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
    await once(socket, 'connect');
    await api.closeServer();
  });
});

test('a server whose port is in use names the process that has it', async () => {
  const squatter = createServer().listen(0, '127.0.0.1');
  await once(squatter, 'listening');
  const { port } = squatter.address() as AddressInfo;
  const app = { handle: () => undefined, drain: () => undefined };
  const options = { host: '127.0.0.1', port, headersTimeoutMs: 1_000, graceMs: 0 };
  await expect(listen(app as never, options)).rejects.toThrow(
    `PORT: 127.0.0.1:${port} cannot be opened (EADDRINUSE: port ${port} is in use by process ${process.pid} (`,
  );
  squatter.close();
});

describe('a connection', () => {
  const exchange = async (text: string, settings: Record<string, number> = {}): Promise<string> => {
    api = await startTestApi(settings);
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
    socket.write(text);
    let received = '';
    socket.on('data', (chunk) => {
      received += chunk;
    });
    await once(socket, 'close');
    return received;
  };

  test('with more than 16 KiB of headers is closed', async () => {
    const answer = await exchange(`GET /livez HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(17_000)}\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 431 /);
  });

  test('whose headers do not arrive in time is closed', async () => {
    const answer = await exchange('GET /livez HTTP/1.1\r\nHost: x\r\n', { HEADERS_TIMEOUT_MS: 500 });
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
  });
});
