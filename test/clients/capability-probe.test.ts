import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { createCapabilityProbe } from '../../src/clients/capability-probe.ts';
import { aGuard } from '../support/address-policy.ts';

const probe = createCapabilityProbe({ guard: aGuard(), deadlineMs: 60_000 });
afterAll(() => probe.close());

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/health`;
}

function answer(body: string, type = 'application/json', status = 200): RequestListener {
  return (_, response) => {
    response.writeHead(status, { 'content-type': type }).end(body);
  };
}

const health = { status: 'ok', name: 'concat', version: '1.0.0', uptime_ms: 5 };

describe('readHealth', () => {
  it.each<[string, RequestListener, object]>([
    ['a health object', answer(JSON.stringify({ ...health, more: 1 })), { kind: 'ok', value: health }],
    [
      'HTML',
      answer('<html>', 'text/html'),
      { kind: 'unusable', detail: expect.stringContaining('text/html') },
    ],
    [
      'text that is not JSON',
      answer('ok'),
      { kind: 'unusable', detail: expect.stringContaining('not JSON') },
    ],
    [
      'another shape',
      answer('{"name": 7}'),
      {
        kind: 'unusable',
        detail: expect.stringMatching(
          /^status: is required; name: expected a string, found a number; version: is/,
        ),
      },
    ],
    [
      'a deep value',
      answer('['.repeat(8_000) + ']'.repeat(8_000)),
      { kind: 'unusable', detail: expect.stringContaining('deeper') },
    ],
    ['404', answer('{}', 'application/json', 404), { kind: 'unusable', detail: 'HTTP 404, not 200' }],
    [
      'a redirect',
      answer('', 'text/plain', 307),
      { kind: 'unusable', detail: expect.stringContaining('redirect') },
    ],
    [
      'more than 16 KiB',
      answer(' '.repeat(16_385)),
      { kind: 'unusable', detail: expect.stringContaining('16384') },
    ],
    ['503', answer('{}', 'application/json', 503), { kind: 'unhealthy', detail: 'HTTP 503' }],
    [
      'a broken connection',
      (request) => request.socket.resetAndDestroy(),
      { kind: 'refused', detail: expect.any(String) },
    ],
  ])('%s', async (_, listener, expected) => {
    expect(await probe.readHealth(await serve(listener))).toEqual(expected);
  });

  it('calls a refused connection refused', async () => {
    const url = await serve(answer('{}'));
    closers.pop()?.();
    expect(await probe.readHealth(url)).toMatchObject({ kind: 'refused' });
  });

  it('calls what is not HTTP unusable', async () => {
    const server = createTcpServer((socket) => socket.end('SSH-2.0-OpenSSH\r\n'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(() => server.close());
    const { port } = server.address() as AddressInfo;
    expect(await probe.readHealth(`http://127.0.0.1:${port}/health`)).toMatchObject({ kind: 'unusable' });
  });

  it('gives up at its deadline, also on an answer that drips', async () => {
    const url = await serve((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      const timer = setInterval(() => response.write(' '), 100);
      response.once('close', () => clearInterval(timer));
    });
    const impatient = createCapabilityProbe({ guard: aGuard(), deadlineMs: 500 });
    closers.push(() => void impatient.close());
    expect(await impatient.readHealth(url)).toEqual({
      kind: 'timeout',
      connected: true,
      detail: 'no complete answer within 0.5 s',
    });
  });

  it('ends with the caller’s signal', async () => {
    const abort = new AbortController();
    const url = await serve(() => abort.abort(new Error('enough')));
    await expect(probe.readHealth(url, abort.signal)).rejects.toThrow('enough');
  });
});

describe('readSpec', () => {
  it('reads up to 64 KiB', async () => {
    const spec = {
      name: 'concat',
      version: '1.0.0',
      description: '',
      input: {},
      output: {},
      cost_model: { type: 'free', rate_usd: 0 },
    };
    const pad = (size: number): string => JSON.stringify(spec).padEnd(size, ' ');
    expect(await probe.readSpec(await serve(answer(pad(65_536))))).toEqual({ kind: 'ok', value: spec });
    expect(await probe.readSpec(await serve(answer(pad(65_537))))).toMatchObject({ kind: 'unusable' });
  });
});
