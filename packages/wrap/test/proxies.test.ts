import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createServiceAgent } from '../src/exchange/connections.ts';

/** A proxy that answers itself, with the address that it was asked for. */
let proxy: Server;
let url = '';
beforeAll(async () => {
  proxy = createServer((incoming, response) => response.end(`proxy ${incoming.url}`));
  proxy.on('connect', (incoming, socket) =>
    socket.end(`HTTP/1.1 403 ${incoming.url?.replace(':', ' ')}\r\n\r\n`),
  );
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
});
afterAll(() => proxy.close());

async function ask(target: string, environment: NodeJS.ProcessEnv): Promise<string> {
  const dispatcher = createServiceAgent(environment);
  try {
    return await (await request(target, { dispatcher })).body.text();
  } finally {
    await dispatcher.close();
  }
}

describe('a service behind a proxy', () => {
  it.each(['HTTP_PROXY', 'http_proxy'])('is asked through the address in %s', async (name) => {
    expect(await ask('http://models.example/v1', { [name]: url })).toBe('proxy http://models.example/v1');
  });

  it('is asked by a tunnel where it is encrypted', async () => {
    await expect(ask('https://models.example/v1', { HTTPS_PROXY: url })).rejects.toThrow(/403/);
  });

  it.each(['127.0.0.1', 'localhost'])('is asked directly at %s', async (host) => {
    const target = url.replace('127.0.0.1', host);
    expect(await ask(`${target}/v1`, { HTTP_PROXY: 'http://proxy.invalid:1' })).toBe('proxy /v1');
  });

  it('is asked directly where NO_PROXY names it', async () => {
    const environment = { HTTP_PROXY: url, NO_PROXY: 'models.invalid' };
    await expect(ask('http://models.invalid/v1', environment)).rejects.toThrow(/ENOTFOUND|EAI_AGAIN/);
    await expect(ask('http://a.invalid/v1', { HTTP_PROXY: url, NO_PROXY: '*' })).rejects.toThrow(
      /ENOTFOUND|EAI_AGAIN/,
    );
  });
});
