/** How long a call stays open when its instance says nothing: one that works on it, and one that has vanished. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { type Agent, MockAgent } from 'undici';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createCapabilityClient } from '../../src/clients/capability-http.ts';
import { AddressRefused, type DialGuard } from '../../src/clients/guarded-dial.ts';
import { CancelSource } from '../../src/core/cancellation.ts';
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
    call: (endpoint: string) =>
      client.call({
        endpoint,
        input: {},
        idempotencyKey: 'key',
        attempt: 1,
        timeoutMs: 600_000,
        signal: new CancelSource(),
      }),
    passIntervals: async (count: number) => {
      for (let interval = 0; interval < count; interval++) {
        vi.advanceTimersByTime(livenessIntervalMs);
        await waitFor('the try to end', () => tries.every(({ destroyed }) => destroyed));
        await setImmediate();
      }
    },
  };
}

function answerOk(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}');
}

const answered = { kind: 'answered', body: { ok: true } };
const lost = { kind: 'lost', message: 'three connects to the instance were not answered' };

describe('an instance at work', () => {
  it('is waited for while it takes no new connections, as one that is shutting down', async () => {
    const { server, endpoint } = await aServer();
    const { call, tries, passIntervals } = aClient();
    const outcome = call(endpoint);
    const [, response] = await once(server, 'request');
    server.close(); // the open connection stays
    await passIntervals(10);
    answerOk(response);
    expect(await outcome).toEqual(answered);
    expect(tries).toHaveLength(1);
  });

  it('is given one connection more to accept, since a single thread accepts none meanwhile', async () => {
    const program = `require('node:http').createServer((_, response) => {
      console.log('at work');
      require('node:fs').readSync(0, Buffer.alloc(1));
      response.setHeader('content-type', 'application/json').end('{"ok":true}');
    }).listen(0, '127.0.0.1', 1, function () { console.log(this.address().port); });`;
    const child = spawn(process.execPath, ['-e', program], { stdio: ['pipe', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill());
    const port = Number(await once(child.stdout, 'data'));
    const { call, tries, passIntervals } = aClient();
    const outcome = call(`http://127.0.0.1:${port}`);
    await once(child.stdout, 'data');
    await passIntervals(10);
    child.stdin.write('.');
    expect(await outcome).toEqual(answered);
    expect(tries).toHaveLength(1);
  });

  it.skipIf(process.platform !== 'linux')(
    'is asked by TCP keepalive after each interval of silence',
    async () => {
      const { server, endpoint } = await aServer();
      const outcome = aClient().call(endpoint);
      const [request, response] = await once(server, 'request');
      const localPort = request.socket.remotePort.toString(16).toUpperCase().padStart(4, '0');
      const line = new RegExp(`^ *\\d+: 0100007F:${localPort} \\S+ 01 \\S+ 02:(\\S+)`, 'm');
      const timer = await waitFor('a keepalive timer', () =>
        line.exec(readFileSync('/proc/net/tcp', 'utf8')),
      );
      answerOk(response);
      expect(await outcome).toEqual(answered);
      expect(Number.parseInt(`${timer[1]}`, 16) * 10).toBeLessThanOrEqual(livenessIntervalMs); // it counts in 10 ms
    },
  );
});

const failing = (error: Error) => () => new Socket().destroy(error);
const failingWith = (code: string) => failing(Object.assign(new Error(code), { code }));
const silent = failingWith('ETIMEDOUT');
const unreachable = failingWith('EHOSTUNREACH');
const refused = failingWith('ECONNREFUSED');
const forbidden = failing(new AddressRefused('169.254.169.254 is a link-local address'));
const unresolved = failingWith('ENOTFOUND');

describe('a call whose instance says nothing', () => {
  it.each([
    ['is lost after three connects in vain', [silent, silent, silent], lost],
    ['is lost after three without a route', [unreachable, unreachable, unreachable], lost],
    [
      'is neither lost nor safe by a connect that was not made',
      [forbidden, unresolved, forbidden, silent, unresolved, silent, forbidden, silent],
      lost,
    ],
    ['stays open once a connect is refused', [silent, silent, refused], answered],
  ])('%s', async (_, script, end) => {
    const { server, endpoint } = await aServer();
    const next = script.values();
    const { call, tries, passIntervals } = aClient({ openSocket: () => (next.next().value ?? silent)() });
    const outcome = call(endpoint);
    const [, response] = await once(server, 'request');
    await passIntervals(script.length + 4);
    answerOk(response);
    expect(await outcome).toEqual(end);
    expect(tries).toHaveLength(script.length);
  });
});

const obstacle = findNamespaceObstacle();
it.skipIf(obstacle !== null)(
  `is lost when its machine has vanished before the request came${obstacle === null ? '' : `: ${obstacle}`}`,
  async () => {
    const namespace = openNamespace();
    onTestFinished(() => namespace.close());
    const listener = await namespace.listen();
    const { server, endpoint } = await aServer((http) => http.listen(listener));
    const { call, tries, passIntervals } = aClient({ openSocket: (url) => aGuard().openSocket(url, 50) });
    let connections = 0;
    server.on('connection', () => void connections++);
    server.on('request', (_, response) => answerOk(response));
    for (let before = 0; before < 2; before++) {
      expect(await call(endpoint)).toEqual(answered);
      await setImmediate(); // now its connection is free
    }
    expect(connections).toBe(1);
    namespace.cutLink();
    const outcome = call(endpoint);
    await passIntervals(3);
    expect(await outcome).toEqual(lost);
    expect(tries).toHaveLength(3);
  },
);

it.each([
  ['read', { kind: 'lost', message: 'the connection broke (EHOSTUNREACH)' }],
  ['connect', { kind: 'not_sent', message: 'no connection (EHOSTUNREACH)' }],
])('tells from the system call that failed, %s, whether the request was sent', async (syscall, end) => {
  const failure = Object.assign(new Error(), { code: 'EHOSTUNREACH', syscall });
  const agent = new MockAgent();
  agent.disableNetConnect();
  agent.get('http://10.0.0.1').intercept({ path: '/exec', method: 'POST' }).replyWithError(failure);
  const createAgent = () => agent as unknown as Agent;
  const { call } = aClient({ createAgent });
  expect(await call('http://10.0.0.1')).toEqual(end);
});
