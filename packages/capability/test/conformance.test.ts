import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { checkCapability } from '../src/conformance.ts';
import { anEcho, serve } from './support/capabilities.ts';

async function failedNames(url: string): Promise<readonly string[]> {
  return (await checkCapability(url)).filter(({ ok }) => !ok).map(({ name }) => name);
}

it('passes a capability of the SDK, one line for each check', async () => {
  const instance = await serve(anEcho());
  const results = await checkCapability(`${instance.endpoint}/`);
  expect(results.filter(({ ok }) => !ok)).toEqual([]);
  expect(results.map(({ detail }) => detail.includes('\n'))).not.toContain(true);
  expect(results.length).toBeGreaterThanOrEqual(11);
  await instance.stop();
});

it('accepts a pattern that cannot run in linear time, with a note that the router does not enforce it', async () => {
  const properties = { text: { type: 'string', pattern: '^(?!\\.)' } };
  const instance = await startPlain(
    answers('GET', '/spec', 200, { ...spec, input: { ...input, properties } }),
  );
  const results = await checkCapability(instance.url);
  expect(results.filter(({ name }) => name.endsWith('schema compiles'))).toEqual([
    {
      name: 'input schema compiles',
      ok: true,
      detail: expect.stringMatching(
        /; the router does not enforce \/properties\/text\/pattern: .*linear time/,
      ),
    },
    { name: 'output schema compiles', ok: true, detail: 'JSON Schema draft 2020-12' },
  ]);
  instance.close();
});

it('reports that no process listens', async () => {
  const results = await checkCapability('http://127.0.0.1:9');
  expect(results).toEqual([{ name: 'GET /health', ok: false, detail: expect.stringContaining('no answer') }]);
});

function json(response: ServerResponse, status: number, body: unknown) {
  return response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

const health = { status: 'ok', name: 'a', version: '1', uptime_ms: 5 };
const input = { type: 'object', required: ['text'] };
const spec = {
  name: 'a',
  version: '1',
  description: '',
  input,
  output: {},
  cost_model: { type: 'free', rate_usd: 0 },
};

/** A capability in plain HTTP, right in all points; a case overrides the answer of some requests. */
type Override = (request: IncomingMessage, response: ServerResponse, body: string) => boolean;
async function startPlain(override: Override) {
  const server = createServer(async (request, response) => {
    const body = (await request.setEncoding('utf8').toArray()).join('');
    if (override(request, response, body)) return undefined;
    const known = { '/health': 'GET', '/spec': 'GET', '/exec': 'POST' }[request.url ?? ''];
    if (known === undefined) return json(response, 404, {});
    if (known !== request.method) return json(response, 405, {});
    if (request.url === '/health') return json(response, 200, health);
    if (request.url === '/spec') return json(response, 200, spec);
    return json(response, 422, { ok: false, error: 'text is missing' });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url, close };
}

/** Answers in lines those who take them. */
function inLines(...lines: readonly unknown[]): Override {
  return (request, response) => {
    if (request.method !== 'POST' || !String(request.headers.accept).includes('ndjson')) return false;
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    response.end(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    return true;
  };
}

const told = [{ progress: 0.5 }, { log: { level: 'info', message: 'two clips' } }];
const refusal = { ok: false, error: 'text is missing', status: 422 };
const inLinesName = 'POST /exec in lines refuses invalid input';

function answers(method: string, path: string, status: number, body: unknown): Override {
  return (request, response) => {
    const isMine = request.method === method && request.url === path;
    if (isMine) json(response, status, body);
    return isMine;
  };
}

/** Answers health truly once, then as a process that was started again. */
function restarting(): Override {
  let asked = 0;
  return (request, response) => {
    if (request.method !== 'GET' || request.url !== '/health') return false;
    asked += 1;
    json(response, 200, { ...health, uptime_ms: asked === 1 ? 5_000 : 10 });
    return true;
  };
}

it.each<[string, Override, readonly string[]]>([
  ['nothing', () => false, []],
  [
    'status',
    answers('GET', '/health', 200, { ...health, status: 'bad' }),
    ['GET /health', '/health and /spec agree', 'still healthy afterwards'],
  ],
  [
    'the version of health',
    answers('GET', '/health', 200, { ...health, version: '2' }),
    ['/health and /spec agree'],
  ],
  [
    'a schema',
    answers('GET', '/spec', 200, { ...spec, output: { type: 'text' } }),
    ['output schema compiles'],
  ],
  [
    'authentication',
    answers('POST', '/exec', 401, { error: 'token' }),
    ['POST /exec refuses invalid input', inLinesName, 'POST /exec refuses what is not JSON'],
  ],
  [
    'the form of a refusal',
    (request, response, body) =>
      body === '{}' && answers('POST', '/exec', 422, { error: 'x' })(request, response, body),
    ['POST /exec refuses invalid input'],
  ],
  [
    'what is not JSON',
    (request, response, body) =>
      body === '{"a":' && answers('POST', '/exec', 500, {})(request, response, body),
    ['POST /exec refuses what is not JSON'],
  ],
  ['a method', answers('GET', '/exec', 200, {}), ['GET /exec is refused']],
  ['unknown paths', answers('GET', '/capstan-conformance', 200, {}), ['an unknown path is 404']],
  ['nothing that it answers in lines', inLines(...told, refusal), []],
  ['a line of its log', inLines({ log: { level: 'loud', message: 'x' } }, refusal), [inLinesName]],
  ['a line of progress', inLines({ progress: 40 }, refusal), [inLinesName]],
  ['its last line', inLines(...told, { ok: false, error: 'x' }), [inLinesName]],
  ['its own life', restarting(), ['still healthy afterwards']],
])('finds a capability that is wrong in %s, and only that', async (_name, override, failed) => {
  const plain = await startPlain(override);
  expect(await failedNames(plain.url)).toEqual(failed);
  plain.close();
});

it('skips the invalid input of a schema that accepts {}', async () => {
  let executed = 0;
  const plain = await startPlain((request, response, body) => {
    if (request.url === '/exec' && body === '{}') executed += 1;
    return answers('GET', '/spec', 200, { ...spec, input: {} })(request, response, body);
  });
  const results = await checkCapability(plain.url);
  plain.close();
  expect(results.find(({ name }) => name.includes('invalid input'))?.detail).toMatch(/^skipped/);
  expect(executed).toBe(0);
});

it('makes a call with the given input, and lists the wrong lines', async () => {
  const lines = [
    ...told,
    { log: 'joined' },
    { log: { level: 'warning', message: 'x' } },
    { ok: true, output: {} },
  ];
  const plain = await startPlain((request, response, body) => {
    return body === '{"text":"a"}' && inLines(...lines)(request, response, body);
  });
  const results = await checkCapability(plain.url, { text: 'a' });
  plain.close();
  expect(results.find(({ name }) => name === 'POST /exec answers the given input')).toEqual({
    name: 'POST /exec answers the given input',
    ok: false,
    detail:
      'line 3, {"log":"joined"}: its log needs a level (debug, info, warn, error) and a message; ' +
      'line 4, {"log":{"level":"warning","message":"x"}}: its log needs a level (debug, info, warn, error) and a message',
  });
});

it('passes what a capability of the SDK logs', async () => {
  const instance = await serve(
    anEcho(async (input, { log, progress }) => {
      progress(0.5);
      log.debug('half');
      log.error('x'.repeat(5_000));
      return input;
    }),
  );
  const results = await checkCapability(instance.endpoint, { text: 'a' });
  expect(results.filter(({ ok }) => !ok)).toEqual([]);
  expect(results.find(({ name }) => name.includes('given input'))?.detail).toBe(
    '4 lines, the last one is the answer',
  );
  await instance.stop();
});
