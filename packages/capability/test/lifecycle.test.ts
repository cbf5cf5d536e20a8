import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest';
import { findCompiled } from '../../../test/support/compiled.ts';
import { bindServer, waitUntilReady } from '../src/lifecycle/start-instance.ts';
import { anEcho, exec, serve } from './support/capabilities.ts';
import { type FakeRouter, startFakeRouter } from './support/fake-router.ts';
import { aFolder } from './support/folders.ts';

let router: FakeRouter;
const children: ChildProcess[] = [];

beforeEach(async () => {
  router = await startFakeRouter();
});
afterEach(() => {
  router.close();
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

function env() {
  return { ROUTER_URL: `${router.url}/`, ROUTER_TOKEN: 'token-1' };
}

const program = findCompiled(inject('packageFolder'), 'packages/capability/test/support/echo-process.ts');

/** The stand-alone file as a process; `lines` grows with what it prints. */
async function startProcess(more: Record<string, string> = {}) {
  const lines: string[] = [];
  const child = spawn(process.execPath, [program], {
    env: { PATH: process.env.PATH, MEDIA_URL: `file://${await aFolder()}`, ...env(), ...more },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.push(child);
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => lines.push(...text.trim().split('\n')));
  }
  const exited = once(child, 'exit').then(([code, signal]) => code ?? signal);
  return { child, lines, exited };
}

const deadline = { timeout: 60_000, interval: 20 };

describe('registration', () => {
  it('sends exactly the specified body, once ready, with the token', async () => {
    const instance = await serve(anEcho(undefined, { max_concurrency: 3 }), env());
    await instance.stop();
    expect(router.said[0]).toEqual({
      method: 'POST',
      path: '/v1/capabilities',
      authorization: 'Bearer token-1',
      body: {
        name: 'echo',
        version: '1.2.3',
        endpoint: instance.endpoint,
        spec_url: `${instance.endpoint}/spec`,
        health_url: `${instance.endpoint}/health`,
        cost_model: { type: 'per_call', rate_usd: 0.01, notes: 'a cent' },
        tags: ['test'],
        max_concurrency: 3,
        queue_depth: 0,
      },
    });
  });

  it('reports what is loaded: at once, with each answer, heartbeat and health', async () => {
    const loaded = ['sdxl'];
    const resident = (): readonly string[] => loaded;
    const keyed = { affinity: '{{ input.text }}', max_resident: 2, resident };
    const instance = await serve(anEcho(undefined, keyed), env(), { heartbeatIntervalMs: 20 });
    loaded.unshift('flux');
    const { body } = await exec(instance, { text: 'flux' });
    expect(body).toMatchObject({ ok: true, resident: ['flux', 'sdxl'] });
    const read = async (path: string) => (await fetch(`${instance.endpoint}${path}`)).json();
    expect(await read('/health')).toMatchObject({ resident: ['flux', 'sdxl'] });
    expect(await read('/spec')).toMatchObject({ affinity: '{{ input.text }}' });
    await vi.waitFor(() => expect(router.said.length).toBeGreaterThan(1), deadline);
    await instance.stop();
    expect(router.said[0]?.body).toMatchObject({ resident: ['sdxl'], max_resident: 2 });
    const beat = router.said.filter(({ path }) => path.endsWith('/heartbeat')).at(-1);
    expect(beat?.body).toMatchObject({ resident: ['flux', 'sdxl'] });
  });

  it.each([
    ['CUDA error', () => new Error('CUDA error')],
    ['it returned object, and a list of texts is needed', () => [1n]],
  ])('works on, and prints it once, when it cannot find out what is loaded: %s', async (reason, find) => {
    const lines: string[] = [];
    const resident = () => {
      const found: unknown = find();
      if (found instanceof Error) throw found;
      return found as string[];
    };
    const keyed = anEcho(undefined, { affinity: '{{ input.text }}', resident });
    const options = { heartbeatIntervalMs: 20, print: (line: string) => void lines.push(line) };
    const instance = await serve(keyed, env(), options);
    expect(await exec(instance, { text: 'a' })).toEqual({
      status: 200,
      body: { ok: true, output: { text: 'a' } },
    });
    expect((await fetch(`${instance.endpoint}/health`)).status).toBe(200);
    await vi.waitFor(() => expect(router.said.length).toBeGreaterThan(1), deadline);
    await instance.stop();
    expect(router.said.filter(({ body }) => 'resident' in body)).toEqual([]);
    expect(lines.filter((line) => !/^\d\/8 /.test(line))).toEqual([
      `resident failed, and is left out: ${reason}`,
    ]);
  });

  it('refuses an affinity that is no expression over the input', () => {
    expect(() => anEcho(undefined, { affinity: '{{ job.text }}' })).toThrow(
      /capability echo: affinity: at character/,
    );
  });

  it('advertises ADVERTISE_URL', async () => {
    const instance = await serve(anEcho(), { ...env(), ADVERTISE_URL: 'http://10.0.0.5:9000/echo/' });
    await instance.stop();
    expect(router.said[0]?.body).toMatchObject({
      endpoint: 'http://10.0.0.5:9000/echo',
      spec_url: 'http://10.0.0.5:9000/echo/spec',
    });
  });

  it('is not retried when refused, and leaves nothing listening', async () => {
    router.answer(403);
    const port = String(await freePort());
    const started = serve(anEcho(), { ...env(), PORT: port });
    await expect(started).rejects.toThrow(/403: as the test asked/);
    expect(router.said).toHaveLength(1);
    await expect(fetch(`http://127.0.0.1:${port}/health`)).rejects.toThrow();
  });

  it('is left out without ROUTER_URL, with a line that explains it', async () => {
    const lines: string[] = [];
    const instance = await serve(anEcho(), {}, { print: (line) => lines.push(line) });
    await instance.stop();
    expect(lines.map((line) => line.slice(0, 3))).toEqual(['2/8', '3/8', '4/8', '5/8', '6/8', '7/8', '8/8']);
    expect(lines[4]).toContain('ROUTER_URL is not set');
    expect(router.said).toEqual([]);
  });
});

describe('heartbeat and deregistration', () => {
  it('reports the queue depth at every interval, whatever the router answers', async () => {
    let finish: (() => void) | undefined;
    const busy = anEcho(async (input) => {
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      return input;
    });
    const instance = await serve(busy, env(), { heartbeatIntervalMs: 10 });
    const beats = () => router.said.filter(({ path }) => path === '/v1/capabilities/echo/heartbeat');
    await vi.waitFor(() => expect(beats().length).toBeGreaterThan(1), deadline);
    expect(beats()[0]).toMatchObject({ method: 'POST', authorization: 'Bearer token-1' });
    expect(beats()[0]?.body).toEqual({ endpoint: instance.endpoint, queue_depth: 0 });
    router.answer(500);
    const call = exec(instance, { text: 'a' });
    await vi.waitFor(() => expect(beats().at(-1)?.body.queue_depth).toBe(1), deadline);
    finish?.();
    expect((await call).status).toBe(200);
    await instance.stop();
    const last = router.said.at(-1);
    expect([last?.method, last?.path]).toEqual(['DELETE', '/v1/capabilities/echo']);
  });

  it('registers again when the router has adopted it by its spec, which has no tags and no other price', async () => {
    const instance = await serve(anEcho(), env(), { heartbeatIntervalMs: 10 });
    router.answer(200, { adopted: true });
    const registrations = () => router.said.filter(({ path }) => path === '/v1/capabilities');
    await vi.waitFor(() => expect(registrations().length).toBeGreaterThan(1), deadline);
    expect(registrations()[1]).toEqual(registrations()[0]);
    await instance.stop();
  });

  it('deregisters once more after its end when the router took it for an earlier instance', async () => {
    const instance = await serve(anEcho(), env());
    router.answer(200, { stale: true });
    await instance.stop();
    expect(router.said.map(({ method }) => method)).toEqual(['POST', 'DELETE', 'DELETE']);
  });

  it('stops although the router is gone', async () => {
    const instance = await serve(anEcho(), env());
    router.close();
    await instance.stop();
    await expect(fetch(`${instance.endpoint}/health`)).rejects.toThrow();
  });
});

describe('a process', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)('deregisters on %s and exits 0', async (signal) => {
    const { child, lines, exited } = await startProcess();
    await vi.waitFor(() => expect(lines.join('\n')).toContain('7/8 heartbeat: every 60 s'), deadline);
    const { endpoint } = router.said[0]?.body ?? {};
    expect(Number(new URL(String(endpoint)).port)).toBeGreaterThanOrEqual(8_100);
    expect(Number(new URL(String(endpoint)).port)).toBeLessThanOrEqual(8_200);
    child.kill(signal);
    expect(await exited).toBe(0);
    expect(router.said.slice(1)).toEqual([
      {
        method: 'DELETE',
        path: '/v1/capabilities/echo',
        authorization: 'Bearer token-1',
        body: { endpoint },
      },
    ]);
  });

  it('exits 1 with a clear line when the registration fails', async () => {
    router.answer(401);
    const { lines, exited } = await startProcess();
    expect(await exited).toBe(1);
    expect(lines.at(-1)).toMatch(
      /did not start: POST .*\/v1\/capabilities was answered 401: as the test asked/,
    );
  });

  it('exits 1 when a setting is wrong, naming it', async () => {
    const { lines, exited } = await startProcess({ PORT: 'http' });
    expect(await exited).toBe(1);
    expect(lines.join('\n')).toContain('PORT');
  });
});

async function freePort(): Promise<number> {
  const server = createServer();
  const port = await bindServer(server, { host: '127.0.0.1', port: 0 });
  server.close();
  await once(server, 'close');
  return port;
}

describe('bind', () => {
  it('continues with the next port when one is in use, and fails with a message when all are', async () => {
    const [first, second] = [createServer(), createServer()];
    const taken = await bindServer(first, { host: '127.0.0.1', port: 0 });
    const free = await freePort();
    expect(await bindServer(second, { host: '127.0.0.1', port: undefined }, [taken, free])).toBe(free);
    await expect(bindServer(createServer(), { host: '127.0.0.1', port: undefined }, [taken])).rejects.toThrow(
      /8100 to 8200/,
    );
    await expect(bindServer(createServer(), { host: '127.0.0.1', port: taken })).rejects.toThrow(
      `port ${taken} is in use by process ${process.pid} (`,
    );
    first.close();
    second.close();
  });

  it.each([
    ['999.1.1.1', /^the name 999\.1\.1\.1 has no address \(E\w+\)$/],
    ['192.0.2.7', /^192\.0\.2\.7 is no address of this machine \(EADDRNOTAVAIL\)$/],
  ])('reports why nothing can listen at %s', async (host, expected) => {
    await expect(bindServer(createServer(), { host, port: undefined })).rejects.toThrow(expected);
  });
});

describe('readiness', () => {
  /** When looks began, by their limit. None is cut off: on a busy machine one may take longer than it. */
  const looks: { readonly at: number; readonly ms: number }[] = [];
  beforeEach(() => {
    looks.length = 0;
    vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => {
      looks.push({ at: performance.now(), ms });
      return new AbortController().signal;
    });
  });
  afterEach(() => vi.restoreAllMocks());

  const startHealth = async (readyAt: number) => {
    const asked = { times: 0 };
    const server = createServer((_request, response) => {
      asked.times += 1;
      response.writeHead(asked.times >= readyAt ? 200 : 503).end('{"status":"ok"}');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/health`;
    return { url, asked, close: () => server.close() };
  };

  it('polls until it is answered', async () => {
    const server = await startHealth(3);
    expect(await waitUntilReady(server.url, 100)).toBe(3);
    server.close();
  });

  it('polls every second by default', async () => {
    const server = await startHealth(2);
    expect(await waitUntilReady(server.url)).toBe(2);
    // Each look may take as long as lies between two. An earlier file may still ask something with another limit.
    const [first, second, ...others] = looks.filter(({ ms }) => ms === 1_000);
    expect([second?.ms, others]).toEqual([1_000, []]);
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThan(900);
    server.close();
  });

  it('gives up after 10 attempts', async () => {
    const server = await startHealth(11);
    await expect(waitUntilReady(server.url, 100)).rejects.toThrow(
      /10 attempts; the last one was answered with HTTP 503 \{"status":"ok"\}$/,
    );
    expect(server.asked.times).toBe(10);
    server.close();
  });
});
