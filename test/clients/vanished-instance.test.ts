/** How long a call stays open when its instance is silent: one that works on it, and one that has vanished. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { CancelSource } from '@capstan/core/cancellation';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { DialGuard } from '@capstan/guarded-dial/guarded-dial';
import { type Agent, MockAgent } from 'undici';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createCapabilityClient } from '../../src/clients/capability-http.ts';
import { aGuard } from '../support/address-policy.ts';
import { findNamespaceObstacle, openNamespace } from '../support/network-namespace.ts';
import { waitFor } from '../support/wait.ts';

const livenessIntervalMs = 10_000;

async function aServer(listen = (server: Server) => server.listen(0, '127.0.0.1')) {
  const server = createServer();
  listen(server);
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { address, port } = server.address() as AddressInfo;
  return { server, endpoint: `http://${address}:${port}` };
}

/** A client whose intervals pass by hand. */
function aClient(parts: Partial<DialGuard> = {}) {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const tries: Socket[] = [];
  const used = { ...aGuard(), ...parts };
  const openSocket: DialGuard['openSocket'] = (...target) => {
    const socket = used.openSocket(...target);
    tries.push(socket);
    return socket;
  };
  const guard = { ...used, openSocket };
  const client = createCapabilityClient({ guard, answerLimitBytes: 1_000, livenessIntervalMs });
  onTestFinished(() => client.close());
  return {
    tries,
    call: async (endpoint: string, input: JsonObject = {}) => {
      const made = await client.call({
        endpoint,
        input,
        idempotencyKey: 'key',
        attempt: 1,
        timeoutMs: 600_000,
        signal: new CancelSource(),
      });
      return made.outcome;
    },
    passIntervals: async (count: number) => {
      for (let interval = 0; interval < count; interval++) {
        await setImmediate(); // now a request is written for which there is a connection
        vi.advanceTimersByTime(livenessIntervalMs);
        await waitFor('the try to end', () => tries.every(({ destroyed }) => destroyed));
      }
    },
  };
}

function answerOk(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}');
}

const answered = { kind: 'answered', body: { ok: true } };
const lost = { kind: 'lost', message: 'three connects to the instance were not answered' };

/** Milliseconds until the client of a connection asks by keepalive, given the server's end. */
function timerOf({ remotePort = 0, localPort = 0 }: Socket): number | undefined {
  // Connections to other servers may have the same port of the client.
  const [client, server] = [remotePort, localPort].map((port) =>
    port.toString(16).toUpperCase().padStart(4, '0'),
  );
  const line = new RegExp(`^ *\\d+: 0100007F:${client} 0100007F:${server} 01 \\S+ 02:(\\S+)`, 'm');
  const [, hex] = line.exec(readFileSync('/proc/net/tcp', 'utf8')) ?? [];
  return hex === undefined ? undefined : Number.parseInt(hex, 16) * 10; // it counts in 10 ms
}

const onLinux = describe.skipIf(process.platform !== 'linux');

onLinux('an instance at work', () => {
  it('is waited for while it takes no new connections, as one that is shutting down', async () => {
    const { server, endpoint } = await aServer();
    const { call, tries, passIntervals } = aClient();
    const outcome = call(endpoint);
    const [, response] = await once(server, 'request');
    server.close(); // the open connection stays
    await passIntervals(10);
    answerOk(response);
    expect(await outcome).toEqual(answered);
    expect(tries).toEqual([]);
  });

  it('is waited for while it has no room for a connection, as one with a single thread', async () => {
    const program = `require('node:http').createServer((_, response) => {
      console.log('at work');
      require('node:fs').readSync(0, Buffer.alloc(1));
      response.setHeader('content-type', 'application/json').end('{"ok":true}');
    }).listen(0, '127.0.0.1', 1, function () { console.log(this.address().port); });`;
    const child = spawn(process.execPath, ['-e', program], { stdio: ['pipe', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill());
    const port = Number(await once(child.stdout, 'data'));
    const { call, tries, passIntervals } = aClient({
      openSocket: (url) => aGuard().openSocket(url, 50), // how a connect ends that is not answered
    });
    const outcome = call(`http://127.0.0.1:${port}`);
    await once(child.stdout, 'data');
    const fillers = Array.from({ length: 4 }, () => connect(port, '127.0.0.1').on('error', () => undefined));
    await waitFor('its queue to be full', () => fillers.filter(({ pending }) => pending).length === 2);
    await passIntervals(10);
    child.stdin.write('.');
    expect(await outcome).toEqual(answered);
    expect(tries).toEqual([]);
    for (const filler of fillers) filler.destroy();
  });

  it.each([
    ['before its answer', (_: ServerResponse) => undefined],
    [
      'within its answer',
      (response: ServerResponse) => response.writeHead(200, ndjson).write('{"progress":0.5}\n'),
    ],
  ])('is asked by TCP keepalive after each interval of silence, %s', async (_, begin) => {
    const { server, endpoint } = await aServer();
    const outcome = aClient().call(endpoint);
    const [request, response] = await once(server, 'request');
    begin(response);
    const timer = await waitFor('a keepalive timer', () => timerOf(request.socket));
    response.end('{"ok":true}');
    await outcome;
    expect(timer).toBeLessThanOrEqual(livenessIntervalMs);
  });
});

const ndjson = { 'content-type': 'application/x-ndjson' };

const obstacle = findNamespaceObstacle();
describe.skipIf(obstacle !== null)(
  `a machine that vanishes${obstacle === null ? '' : `: ${obstacle}`}`,
  () => {
    async function aMachine() {
      const namespace = openNamespace();
      onTestFinished(() => namespace.close());
      const listener = await namespace.listen();
      const { server, endpoint } = await aServer((http) => http.listen(listener));
      let patienceMs = 60_000; // a busy machine may take its time to answer
      return {
        server,
        endpoint,
        openSocket: (url: URL) => aGuard().openSocket(url, patienceMs),
        vanish: () => {
          namespace.cutLink();
          patienceMs = 50;
        },
      };
    }

    it('before the request comes is noticed after three intervals', async () => {
      const { server, endpoint, openSocket, vanish } = await aMachine();
      const { call, tries, passIntervals } = aClient({ openSocket });
      let connections = 0;
      server.on('connection', () => void connections++);
      server.on('request', (_, response) => answerOk(response));
      for (let before = 0; before < 2; before++) {
        expect(await call(endpoint)).toEqual(answered);
        await setImmediate(); // now its connection is free
      }
      expect(connections).toBe(1);
      vanish();
      const outcome = call(endpoint);
      await passIntervals(3);
      expect(await outcome).toEqual(lost);
      expect(tries).toHaveLength(3);
    });

    it.each([1, 5])(
      'within the request is noticed after three intervals, with %i open calls',
      async (count) => {
        const { server, endpoint, openSocket, vanish } = await aMachine();
        const { call, tries, passIntervals } = aClient({ openSocket });
        let requests = 0;
        server.on('request', () => void requests++); // and reads no further
        const text = 'x'.repeat(12 * 1_048_576);
        const outcomes = Array.from({ length: count }, () => call(endpoint, { text }));
        await waitFor('all calls to come', () => requests === count);
        await passIntervals(10); // it is at work
        expect(tries).toHaveLength(10);
        vanish();
        await passIntervals(3);
        expect(await Promise.all(outcomes)).toEqual(Array(count).fill(lost));
        expect(tries).toHaveLength(13);
      },
    );

    it('is tried at all its addresses with less patience, once it has been silent', async () => {
      const { endpoint, vanish } = await aMachine();
      const guard = aGuard();
      const connectWithin = (connectTimeoutMs: number, port: number) => {
        const agent = guard.createAgent({ connectTimeoutMs });
        onTestFinished(() => agent.destroy());
        return agent.request({ origin: endpoint.replace(/\d+$/, `${port}`), path: '/', method: 'GET' });
      };
      vanish();
      const silence = { code: 'UND_ERR_CONNECT_TIMEOUT' };
      await expect(connectWithin(50, 8_001)).rejects.toMatchObject(silence);
      await expect(connectWithin(3_600_000, 8_002)).rejects.toMatchObject(silence); // and does not hang
    });
  },
);

it.each([
  ['read', { kind: 'lost', message: 'the connection broke (EHOSTUNREACH)' }],
  ['connect', { kind: 'not_sent', message: 'no connection (EHOSTUNREACH)' }],
])('shows by the system call that failed, %s, whether the request was sent', async (syscall, end) => {
  const failure = Object.assign(new Error(), { code: 'EHOSTUNREACH', syscall });
  const agent = new MockAgent();
  agent.disableNetConnect();
  agent.get('http://10.0.0.1').intercept({ path: '/exec', method: 'POST' }).replyWithError(failure);
  const createAgent = () => agent as unknown as Agent;
  const { call } = aClient({ createAgent });
  expect(await call('http://10.0.0.1')).toEqual(end);
});
