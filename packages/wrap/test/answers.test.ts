/** Answers that must not be trusted: addresses of files, and answers without an end. */
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { publicAddresses } from '@capstan/guarded-dial/address-policy';
import { describe, expect, it, onTestFinished } from 'vitest';
import { call, callInLines, findingsOf, linesOf, startWrapped } from './support.ts';

/** A server of the test. @returns its address, and the paths that were asked of it */
async function aServer(answer: RequestListener): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.url} ${request.headers.authorization ?? ''}`.trim());
    answer(request, response);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

const sendBytes: RequestListener = (_request, response) => void response.end('BYTES');

/** A service whose answer names a file. */
function aService(address: () => string): Promise<{ url: string; asked: string[] }> {
  return aServer((request, response) => {
    if (request.url === '/file') return void response.end('OWN');
    if (request.url === '/moved') return void response.writeHead(302, { location: address() }).end();
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ file: address() }));
  });
}

function aFileOf(url: string, files = ''): string {
  return `kind: http
name: remote
version: 1.0.0
description: Asks a service.
input: {type: object}
output: {type: object}
files: {${files}upload: {out: {to: "media://job/out.txt", from: "{{ answer.file }}"}}}
result: {out: "{{ files.out }}"}
http:
  url: "${url}/ask"
  headers: {authorization: "\${KEY}"}
`;
}

const environment = { KEY: 'a-secret-key' };

describe('a file of an answer', () => {
  it('is read from the service itself, with its headers', async () => {
    let own = '';
    const { url, asked } = await aService(() => `${own}/file`);
    own = url;
    const instance = await startWrapped(aFileOf(url), { environment });
    expect((await call(instance, {})).body.output).toEqual({ out: 'media://job/out.txt' });
    expect((await instance.get('media://job/out.txt')).toString()).toBe('OWN');
    expect(asked).toEqual(['/ask a-secret-key', '/file a-secret-key']);
  });

  it.each([
    ['loopback', 'http://127.0.0.1:PORT/x', 'loopback'],
    ['loopback by name', 'http://localhost:PORT/x', 'loopback'],
    ['loopback as a number', 'http://2130706433:PORT/x', 'loopback'],
    ['loopback in IPv6', 'http://[::ffff:127.0.0.1]:PORT/x', 'loopback'],
    ['metadata', 'http://169.254.169.254/latest/meta-data/', 'link-local'],
    ['metadata elsewhere', 'http://100.100.100.200/', 'metadata'],
    ['a private network', 'http://10.1.2.3/', 'private'],
    ['another private network', 'http://192.168.1.1/', 'private'],
    ['a private network in IPv6', 'http://[fd12::1]/', 'private'],
    ['an unspecified address', 'http://0.0.0.0:PORT/x', 'unspecified'],
  ])('is not read from %s', async (_what, address, reason) => {
    const inner = await aServer(sendBytes);
    const named = address.replace('PORT', new URL(inner.url).port);
    const { url } = await aService(() => named);
    const answer = await call(await startWrapped(aFileOf(url), { environment }), {});
    expect(answer).toMatchObject({ status: 422, code: 'provider_refused' });
    expect(answer.body.error).toContain(reason);
    expect(inner.asked).toEqual([]);
  });

  it.each(['http://user:hunter22@93.184.215.14/x', 'https://hunter22@example.com/'])(
    'is not read from %s, whose password is not shown',
    async (named) => {
      const { url } = await aService(() => named);
      const answer = await call(await startWrapped(aFileOf(url), { environment }), {});
      expect(answer).toMatchObject({ status: 422, code: 'provider_refused' });
      expect(answer.body.error).toContain('has a user or password');
      expect(answer.body.error).not.toContain('hunter22');
    },
  );

  it('is not read where a redirect of the service leads, unless the file lists that origin', async () => {
    const inner = await aServer(sendBytes);
    let own = '';
    let isFirst = true;
    const { url, asked } = await aService(() => {
      const named = isFirst ? `${own}/moved` : `${inner.url}/moved-to`;
      isFirst = !isFirst;
      return named;
    });
    own = url;
    const refused = await call(await startWrapped(aFileOf(url), { environment }), {});
    expect(refused).toMatchObject({ status: 422, code: 'provider_refused' });
    expect(inner.asked).toEqual([]);
    const listed = await startWrapped(aFileOf(url, `origins: ["${inner.url}"], `), { environment });
    expect(await call(listed, {})).toMatchObject({ status: 200 });
    expect(inner.asked).toEqual(['/moved-to']);
    expect(asked).toContain('/moved a-secret-key');
  });

  it('is not read by another scheme, nor after many redirects', async () => {
    let own = '';
    let named = 'data:text/plain,x';
    const { url, asked } = await aService(() => named);
    own = url;
    const start = () => startWrapped(aFileOf(url), { environment });
    expect(await call(await start(), {})).toMatchObject({ status: 502 });
    named = `${own}/moved`;
    const answer = await call(await start(), {});
    expect(answer.body.error).toContain('more than 5 redirects');
    expect(asked.filter((path) => path.startsWith('/moved')).length).toBe(6);
  });

  it('has at most the bytes that are allowed, also as the answer itself', async () => {
    let own = '';
    const { url } = await aService(() => `${own}/file`);
    own = url;
    const small = await startWrapped(aFileOf(url, 'max_bytes: 2, '), { environment });
    const refused = {
      status: 422,
      body: { error: 'the file of the answer is larger than the allowed 2 bytes' },
    };
    expect(await call(small, {})).toMatchObject(refused);
    const exact = await startWrapped(aFileOf(url, 'max_bytes: 3, '), { environment });
    expect(await call(exact, {})).toMatchObject({ status: 200 });
    const endless = await aServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'image/png' });
      const timer = setInterval(() => response.write('x'.repeat(1_000)), 1);
      response.once('close', () => clearInterval(timer));
    });
    const whole = await startWrapped(aFileOf(endless.url, 'max_bytes: 2000, '), { environment });
    expect(await call(whole, {})).toMatchObject({ status: 422, code: 'provider_refused' });
  });

  it('lists origins alone', () => {
    expect(linesOf(findingsOf(aFileOf('http://a.example', 'origins: ["http://b.example/x"], ')))).toEqual([
      expect.stringContaining('an origin is http:// or https:// and a host, without a path'),
      expect.anything(),
    ]);
  });
});

it.each(['93.184.216.34', '8.8.8.8', '172.32.0.1', '100.63.0.1', '2606:4700::1111'])(
  'counts %s as a public address',
  (address) => {
    expect(publicAddresses.findFault(address, 80)).toBeNull();
  },
);

describe('an error without an end', () => {
  it.each([
    ['in one piece', 300_000],
    ['in pieces', 1_000],
  ])('is read as far as it is shown, %s', async (_what, size) => {
    const endless = await aServer((_request, response) => {
      response.writeHead(500, { 'content-type': 'text/plain' });
      const write = (): void => {
        while (!response.destroyed && response.write('e'.repeat(size)));
      };
      response.on('drain', write);
      write();
    });
    const answer = await call(await startWrapped(aFileOf(endless.url), { environment }), {});
    expect(answer).toMatchObject({ status: 502, code: 'provider_unavailable' });
    expect(answer.body.error).toContain(`/ask was answered 500: ${'e'.repeat(600)}`);
    expect(answer.body.error?.length).toBeLessThan(1_000);
  });
});

describe('a stream', () => {
  const aChat = (url: string) => `kind: openai
name: model.fast
version: 1.0.0
description: Chats.
openai: {base_url: "${url}", endpoint: chat, model: m}
`;
  const ask = { messages: [{ role: 'user', content: 'hi' }] };

  it.each([
    ['in one piece', 3_000_000],
    ['in small pieces', 100],
  ])('ends when a line has no end, %s', async (_what, size) => {
    const endless = await aServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const write = (): void => {
        while (!response.destroyed && response.write('d'.repeat(size)));
      };
      response.on('drain', write);
      write();
    });
    const answer = await call(await startWrapped(aChat(endless.url)), ask);
    expect(answer).toMatchObject({
      status: 422,
      code: 'provider_refused',
      body: { error: 'a line of the answer is larger than the allowed 8388608 bytes' },
    });
  });

  it('may split its lines anywhere, also within a character', async () => {
    const events = [{ delta: { content: 'Zoë ' } }, { delta: { content: '€' }, finish_reason: 'stop' }]
      .map((choice) => `data: ${JSON.stringify({ model: 'm', choices: [choice] })}\r\n\r\n`)
      .join('');
    const split = await aServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const byte of Buffer.from(`${events}data: [DONE]`)) response.write(Buffer.from([byte]));
      response.end();
    });
    const lines = await callInLines(await startWrapped(aChat(split.url)), ask);
    expect(lines.at(-1)).toMatchObject({ output: { text: 'Zoë €', finish_reason: 'stop' } });
  });
});
