import type { LookupAddress } from 'node:dns';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCapabilityClient } from '../../../src/clients/capability-http.ts';
import { createCapabilityProbe } from '../../../src/clients/capability-probe.ts';
import { aGuard } from '../../../test/support/address-policy.ts';
import { waitFor } from '../../../test/support/wait.ts';
import type { AddressPolicyOptions } from '../src/address-policy.ts';
import type { Resolve } from '../src/guarded-dial.ts';

/** `host` header of each request; `gate` holds back the answers to `/exec`. */
const hosts: (string | undefined)[] = [];
let gate: Promise<void> = Promise.resolve();
let server: Server;
let port: number;
beforeAll(async () => {
  server = createServer(async (request, response) => {
    hosts.push(request.headers.host);
    if (request.method === 'POST') await gate;
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ status: 'ok', name: 'concat', version: '1.0.0', uptime_ms: 5 }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as AddressInfo).port;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

/** Answers each question with the next addresses, and continues with the last; remembers the names. */
function aResolver(...answers: string[][]): { resolve: Resolve; asked: string[] } {
  const asked: string[] = [];
  const resolve: Resolve = async (name) => {
    const addresses = answers[Math.min(asked.length, answers.length - 1)] ?? [];
    asked.push(name);
    return addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  };
  return { resolve, asked };
}

async function readHealth(url: string, options: Partial<AddressPolicyOptions> = {}, resolve?: Resolve) {
  const probe = createCapabilityProbe({ guard: aGuard(options, resolve), deadlineMs: 5_000 });
  try {
    return await probe.readHealth(url);
  } finally {
    await probe.close();
  }
}

function anExec(endpoint: string) {
  return {
    endpoint,
    input: {},
    idempotencyKey: 'k',
    attempt: 1,
    timeoutMs: 10_000,
    signal: new AbortController().signal,
  };
}

async function exec(endpoint: string, options: Partial<AddressPolicyOptions> = {}, resolve?: Resolve) {
  const client = createCapabilityClient({
    guard: aGuard(options, resolve),
    answerLimitBytes: 1_000,
    livenessIntervalMs: 10_000,
  });
  try {
    return (await client.call(anExec(endpoint))).outcome;
  } finally {
    await client.close();
  }
}

describe('a name', () => {
  it('is connected to at the address that was judged, with its own Host', async () => {
    const { resolve, asked } = aResolver(['127.0.0.1']);
    hosts.length = 0;
    const answer = await readHealth(`http://concat.test:${port}/health`, {}, resolve);
    expect({ kind: answer.kind, asked, hosts }).toEqual({
      kind: 'ok',
      asked: ['concat.test'],
      hosts: [`concat.test:${port}`],
    });
  });

  it('is refused when a later answer of the name server is forbidden (rebinding)', async () => {
    const { resolve, asked } = aResolver(['127.0.0.1'], ['169.254.169.254']);
    const probe = createCapabilityProbe({ guard: aGuard({}, resolve), deadlineMs: 5_000 });
    const url = `http://rebind.test:${port}/health`;
    expect((await probe.readHealth(url)).kind).toBe('ok');
    expect(await probe.readHealth(url)).toEqual({
      kind: 'unusable',
      detail: 'rebind.test is not allowed: 169.254.169.254 is a link-local address, where no instance may be',
    });
    await probe.close();
    expect(asked).toHaveLength(2); // once a connection: nothing is asked between judging and connecting
  });

  it.each([
    ['one forbidden address among good ones', ['127.0.0.1', '169.254.169.254'], 'link-local'],
    ['an IPv4 address inside IPv6', ['::ffff:169.254.169.254'], 'link-local'],
    ['metadata behind NAT64', ['64:ff9b::a9fe:a9fe'], 'link-local'],
    ['a public address', ['93.184.216.34'], 'outside ALLOWED_CIDRS'],
  ])('is refused for %s, before anything is sent', async (_, addresses, reason) => {
    const { resolve } = aResolver(addresses);
    hosts.length = 0;
    const url = `http://mixed.test:${port}`;
    const outcomes = [await readHealth(`${url}/health`, {}, resolve), await exec(url, {}, resolve)];
    expect(outcomes).toEqual([
      { kind: 'unusable', detail: expect.stringContaining(reason) },
      { kind: 'not_sent', message: expect.stringContaining(reason) },
    ]);
    expect(hosts).toEqual([]);
  });

  it('is refused for loopback in production', async () => {
    const { resolve } = aResolver(['127.0.0.1']);
    const health = await readHealth(`http://sneaky.test:${port}/health`, { allowsLoopback: false }, resolve);
    expect(health).toMatchObject({ kind: 'unusable', detail: expect.stringContaining('loopback') });
  });

  it('is refused for an address of Capstan itself, also where that is known by name', async () => {
    const { resolve } = aResolver(['127.0.0.1']);
    const ownListeners = [{ host: 'database.internal', port }];
    for (const host of ['alias.test', '127.0.0.1', '[::ffff:127.0.0.1]']) {
      const health = await readHealth(`http://${host}:${port}/health`, { ownListeners }, resolve);
      expect(health).toMatchObject({ kind: 'unusable', detail: expect.stringContaining("Capstan's own") });
    }
  });

  it('that the system cannot resolve is no connection, as before', async () => {
    const resolve: Resolve = () => Promise.reject(Object.assign(new Error('no'), { code: 'ENOTFOUND' }));
    expect(await readHealth('http://nowhere.test/health', {}, resolve)).toMatchObject({ kind: 'refused' });
    expect(await exec('http://nowhere.test', {}, resolve)).toMatchObject({ kind: 'not_sent' });
  });

  it('keeps its name for TLS', async () => {
    const names: string[] = [];
    const tls = createTlsServer({
      SNICallback: (name, done) => {
        names.push(name);
        done(new Error('enough'));
      },
    });
    await new Promise<void>((resolve) => tls.listen(0, '127.0.0.1', resolve));
    const { resolve } = aResolver(['127.0.0.1']);
    await readHealth(`https://secure.test:${(tls.address() as AddressInfo).port}/health`, {}, resolve);
    tls.close();
    expect(names).toEqual(['secure.test']);
  });

  it('that moves to a forbidden address during a call is not dialled to see whether it lives', async () => {
    const { resolve, asked } = aResolver(['127.0.0.1'], ['169.254.169.254']);
    const client = createCapabilityClient({
      guard: aGuard({}, resolve),
      answerLimitBytes: 1_000,
      livenessIntervalMs: 20,
    });
    let open = (): void => undefined;
    gate = new Promise((resolve) => {
      open = resolve;
    });
    const input = { text: 'x'.repeat(12 * 1_048_576) }; // more than is acknowledged before it is read
    const outcome = client.call({ ...anExec(`http://moving.test:${port}`), input });
    await waitFor('five tries, one for the call', () => asked.length >= 6);
    open();
    expect(await outcome).toMatchObject({ outcome: { kind: 'answered' } });
    await client.close();
  });

  it('that takes long to resolve takes no time from its connect', async () => {
    let answer = (_: LookupAddress[]): void => undefined;
    const resolve: Resolve = () =>
      new Promise((settle) => {
        answer = settle;
      });
    const socket = aGuard({}, resolve).openSocket(new URL(`http://slow.test:${port}`), 5_000);
    await waitFor('the name to be asked for', () => socket.connecting);
    expect(socket.timeout).toBeUndefined();
    answer([{ address: '127.0.0.1', family: 4 }]);
    await once(socket, 'connect');
    expect(socket.timeout).toBe(5_000);
    socket.destroy();
  });
});

describe('an IP literal', () => {
  it.each([
    ['in production', () => `http://127.0.0.1:${port}`, { allowsLoopback: false }, 'loopback'],
    ['in decimal', () => 'http://2852039166', {}, '169.254.169.254 is a link-local'],
    ['in octal', () => 'http://0251.0376.0251.0376', {}, '169.254.169.254 is a link-local'],
    ['in IPv6', () => `http://[::ffff:127.0.0.1]:${port}`, { allowsLoopback: false }, 'loopback'],
    ['behind NAT64', () => 'http://[64:ff9b::a9fe:a9fe]', {}, 'link-local'],
  ])('is refused when dialled, %s', async (_, url, options, reason) => {
    hosts.length = 0;
    expect(await readHealth(`${url()}/health`, options)).toEqual({
      kind: 'unusable',
      detail: expect.stringContaining(reason),
    });
    expect(await exec(url(), options)).toEqual({
      kind: 'not_sent',
      message: expect.stringContaining(reason),
    });
    expect(hosts).toEqual([]);
  });
});

describe('a kept connection', () => {
  it('asks no name server again', async () => {
    const { resolve, asked } = aResolver(['127.0.0.1']);
    const client = createCapabilityClient({
      guard: aGuard({}, resolve),
      answerLimitBytes: 1_000,
      livenessIntervalMs: 10_000,
    });
    let connections = 0;
    const count = () => void connections++;
    server.on('connection', count);
    for (let call = 0; call < 10; call++) {
      expect(await client.call(anExec(`http://kept.test:${port}`))).toMatchObject({
        outcome: { kind: 'answered' },
      });
    }
    server.off('connection', count);
    await client.close();
    expect(asked).toHaveLength(connections);
    expect(connections).toBeLessThan(5);
  });
});

it('answers an exec that redirects as invalid, without following', async () => {
  const redirecting = createServer((_, response) => {
    response.writeHead(307, { location: `http://127.0.0.1:${port}/exec` }).end();
  });
  await new Promise<void>((resolve) => redirecting.listen(0, '127.0.0.1', resolve));
  hosts.length = 0;
  const outcome = await exec(`http://127.0.0.1:${(redirecting.address() as AddressInfo).port}`);
  redirecting.closeAllConnections();
  await waitFor('the server to close', () => new Promise((done) => redirecting.close(() => done(true))));
  expect(outcome).toMatchObject({ kind: 'invalid', message: expect.stringContaining('redirect') });
  expect(hosts).toEqual([]);
});
