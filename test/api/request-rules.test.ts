/** Every rule of a request, on the route that is asked the most. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.ts';
import { registerInstance } from '../support/direct-calls.ts';
import type { Instance } from '../support/fleet.ts';
import { sendRaw } from '../support/raw-request.ts';

let api: TestApi;
let instance: Instance;
let other: string;
let reader: string;
beforeAll(async () => {
  api = await startTestApi({ BODY_LIMIT_BYTES: 4_096 });
  instance = await registerInstance(api, { name: 'echo' });
  other = (await api.createProject('other')).apiKey;
  reader = await api.createKey({ scopes: ['run:read'] });
});
afterAll(async () => {
  await instance.stop();
  await api.close();
});

const path = '/v1/capabilities/echo/exec';

interface Sent {
  readonly method?: string;
  readonly path?: string;
  /** Sent as they are, so that a name may come twice; `KEY` stands for the key. */
  readonly headers?: readonly (readonly [name: string, value: string])[];
  readonly body?: string;
}

const json = [['Content-Type', 'application/json']] as const;
const key = [['Authorization', 'Bearer KEY']] as const;
const host = [['Host', 'capstan.test']] as const;
const all = [...host, ...json, ...key];
const valid = '{"input":{"n":1}}';

async function send({ method = 'POST', path: to = path, headers = all, body = valid }: Sent) {
  const secrets = {
    KEY: api.apiKey,
    OTHER_KEY: other,
    READER: reader,
    PROJECT: api.projectId,
  };
  const fill = (value: string): string =>
    value.replace(/\b(KEY|OTHER_KEY|READER|PROJECT)\b/, (name) => secrets[name as keyof typeof secrets]);
  const hasBody = method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS';
  const length = hasBody ? [['Content-Length', String(Buffer.byteLength(body))] as const] : [];
  const answer = await sendRaw(
    api.url,
    { path: to, method, headers: [...headers, ...length].flatMap(([name, value]) => [name, fill(value)]) },
    (request) => request.end(hasBody ? body : undefined),
  );
  const { code } = answer.body === '' ? { code: undefined } : JSON.parse(answer.body);
  return { ...answer, code };
}

test.each<[rule: string, sent: Sent, status: number, code?: string]>([
  ['a call', {}, 200],
  ['a key as X-API-Key', { headers: [...host, ...json, ['X-API-Key', 'KEY']] }, 200],
  ['the same key twice', { headers: [...all, ['X-API-Key', 'KEY']] }, 200],
  ['no key', { headers: [...host, ...json] }, 401, 'unauthenticated'],
  ['an unknown key', { headers: [...host, ...json, ['Authorization', 'Bearer x']] }, 401, 'unauthenticated'],
  [
    'another scheme',
    { headers: [...host, ...json, ['Authorization', 'Basic eDp5']] },
    401,
    'unauthenticated',
  ],
  ['two keys', { headers: [...all, ['X-API-Key', 'OTHER_KEY']] }, 401, 'unauthenticated'],
  ['a key without the scope', { headers: [...host, ...json, ['X-API-Key', 'READER']] }, 403, 'forbidden'],
  [
    'a project of others',
    { headers: [...host, ...json, ['X-API-Key', 'OTHER_KEY'], ['X-Project-ID', 'PROJECT']] },
    403,
    'forbidden',
  ],
  ['two projects', { headers: [...all, ['X-Project-ID', 'a'], ['X-Project-ID', 'b']] }, 403, 'forbidden'],
  ['two hosts', { headers: [['Host', 'a'], ...all] }, 422, 'request_invalid'],
  ['NUL in the path', { path: '/v1/capabilities/e%00/exec' }, 422, 'request_invalid'],
  ['NUL in the query', { path: `${path}?a=%00` }, 422, 'request_invalid'],
  ['a query, which it does not read', { path: `${path}?a=1` }, 200],
  ['a slash at the end', { path: `${path}/` }, 200],
  ['a name in another case', { path: '/v1/Capabilities/echo/exec' }, 404, 'not_found'],
  ['no capability of that name', { path: '/v1/capabilities/none/exec' }, 404, 'not_found'],
  ['a name that is none', { path: '/v1/capabilities/%20/exec' }, 422, 'request_invalid'],
  ['a damaged name', { path: '/v1/capabilities/%ff/exec' }, 404, 'not_found'],
  ['a path below it', { path: `${path}/more` }, 404, 'not_found'],
  ['another method', { method: 'GET' }, 405, 'method_not_allowed'],
  ['a method that only others know', { method: 'PROPFIND' }, 405, 'method_not_allowed'],
  ['no content type', { headers: [...host, ...key] }, 415, 'unsupported_media_type'],
  ['text', { headers: [...host, ...key, ['Content-Type', 'text/plain']] }, 415, 'unsupported_media_type'],
  [
    'JSON with a charset',
    { headers: [...host, ...key, ['Content-Type', 'application/json; charset=utf-8']] },
    200,
  ],
  ['a packed body', { headers: [...all, ['Content-Encoding', 'gzip']] }, 415, 'unsupported_media_type'],
  ['a body up to the limit', { body: valid.padEnd(4_096) }, 200],
  ['a body above the limit', { body: valid.padEnd(4_097) }, 413, 'body_too_large'],
  ['no body', { body: '' }, 400, 'malformed_json'],
  ['half a body', { body: '{"input":' }, 400, 'malformed_json'],
  ['a number', { body: '7' }, 422, 'request_invalid'],
  ['depth', { body: `{"input":{"a":${'['.repeat(100)}${']'.repeat(100)}}}` }, 400, 'json_too_deep'],
  ['a prototype key', { body: '{"input":{"__proto__":{}}}' }, 400, 'proto_key'],
  ['NUL in a string', { body: '{"input":{"a":"\\u0000"}}' }, 400, 'malformed_json'],
  ['half a character', { body: '{"input":{"a":"\\ud83d"}}' }, 400, 'malformed_json'],
  ['a name twice, of which the last counts', { body: '{"input":7,"input":{}}' }, 200],
  ['a field that is none', { body: '{"input":{},"extra":1}' }, 422, 'request_invalid'],
  ['a key of idempotency', { headers: [...all, ['Idempotency-Key', 'one']] }, 200],
  ['one with a space', { headers: [...all, ['Idempotency-Key', 'a b']] }, 422, 'request_invalid'],
  ['one too long', { headers: [...all, ['Idempotency-Key', 'k'.repeat(256)]] }, 422, 'request_invalid'],
  ['a promise of more, which is asked for', { headers: [...all, ['Expect', '100-continue']] }, 200],
])('%s', async (_, sent, status, code) => {
  const answer = await send(sent);
  expect([answer.status, answer.code]).toEqual([status, code]);
  const type = code === undefined ? 'application/json' : 'application/problem+json';
  expect(answer.headers).toMatchObject({
    'content-type': type,
    'content-length': String(Buffer.byteLength(answer.body)),
    'content-security-policy': expect.stringContaining("default-src 'none'"),
    'x-content-type-options': 'nosniff',
    'x-request-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
  });
});

test('OPTIONS answers what is possible, without a key', async () => {
  const answer = await send({ method: 'OPTIONS', headers: host });
  expect([answer.status, answer.headers.allow, answer.body]).toEqual([204, 'POST', '']);
});

test('HEAD answers like the method that is not possible, without a body', async () => {
  const answer = await send({ method: 'HEAD' });
  expect([answer.status, answer.headers.allow, answer.body]).toEqual([405, 'POST', '']);
});

test('a request id is taken over when it is sane', async () => {
  const named = (id: string) => send({ headers: [...all, ['X-Request-Id', id]] });
  expect((await named('trace-42')).headers['x-request-id']).toBe('trace-42');
  expect((await named('a"b')).headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
});

test('an answer to a key may not be stored, and is marked when it is replayed', async () => {
  const headers = [...all, ['Idempotency-Key', 'again']] as const;
  const [first, again] = [await send({ headers }), await send({ headers })];
  expect([first.headers['idempotent-replayed'], again.headers['idempotent-replayed']]).toEqual([
    undefined,
    'true',
  ]);
  expect([again.body, again.headers['cache-control']]).toEqual([first.body, 'no-store']);
  expect(await send({ headers, body: '{"input":{"n":2}}' })).toMatchObject({ code: 'idempotency_key_reuse' });
});

test('a problem names the request and what was wrong with it', async () => {
  const answer = await send({ body: '{"input":7,"extra":1}' });
  const problem = JSON.parse(answer.body);
  expect(problem).toMatchObject({
    type: '/docs/errors#request_invalid',
    status: 422,
    instance: path,
    request_id: answer.headers['x-request-id'],
  });
  expect(problem.errors.map(({ pointer }: { pointer: string }) => pointer).sort()).toEqual([
    '/extra',
    '/input',
  ]);
});
