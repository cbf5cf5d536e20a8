import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.ts';
import { anInstance } from '../support/factories.ts';
import { sendRaw } from '../support/raw-request.ts';

const limit = 4_096;

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi({ BODY_LIMIT_BYTES: limit, DEFINITION_LIMIT_BYTES: 16_384 });
  await anInstance(api.db, { name: 'b' });
});
afterAll(() => api.close());

function post(body: string | Uint8Array, headers: Record<string, string> = {}) {
  return api.call('/v1/jobs', { body, headers: { 'content-type': 'application/json', ...headers } });
}

async function outcome(answer: Response): Promise<[number, string]> {
  return [answer.status, ((await answer.json()) as { code: string }).code];
}

function jobOf(length: number): string {
  const frame = JSON.stringify({ job: { text: '' } }).length;
  return JSON.stringify({ job: { text: 'x'.repeat(length - frame) } });
}

describe('a JSON body', () => {
  test('is taken up to the limit and refused one byte above it', async () => {
    expect((await post(jobOf(limit))).status).toBe(201);
    expect(await outcome(await post(jobOf(limit + 1)))).toEqual([413, 'body_too_large']);
  });

  test('of unknown length is refused while it arrives', async () => {
    const headers = [
      'Host',
      'x',
      'Authorization',
      `Bearer ${api.apiKey}`,
      'Content-Type',
      'application/json',
    ];
    const answer = await sendRaw(api.url, { path: '/v1/jobs', method: 'POST', headers }, (request) => {
      request.write(`{"job":{"a":"${'x'.repeat(limit * 4)}`);
    });
    expect([answer.status, JSON.parse(answer.body).code]).toEqual([413, 'body_too_large']);
  });

  test.each([
    ['text', '{"job":', 'malformed_json'],
    ['nothing', '', 'malformed_json'],
    ['depth', `{"job":{"a":${'['.repeat(100)}${']'.repeat(100)}}}`, 'json_too_deep'],
    ['a prototype key', '{"job":{"__proto__":{"admin":true}}}', 'proto_key'],
    ['an escaped prototype key', '{"job":{"\\u005f_proto__":{}}}', 'proto_key'],
    ['NUL', '{"job":{"a":"\\u0000"}}', 'malformed_json'],
    ['a raw NUL', '{"job":{"a":"\0"}}', 'malformed_json'],
    ['half a surrogate pair', '{"job":{"a":"\\ud83d"}}', 'malformed_json'],
    ['bytes that are not UTF-8', Buffer.from('{"job":{"a":"\xff"}}', 'latin1'), 'malformed_json'],
  ])('is refused for its %s', async (_, body, code) => {
    expect(await outcome(await post(body))).toEqual([400, code]);
  });

  test.each([
    ['text/plain', ''],
    ['application/yaml', ''],
    ['application/json', 'gzip'],
  ])('must be announced as JSON, not %s %s', async (type, encoding) => {
    const answer = await post('{"job":{}}', { 'content-type': type, 'content-encoding': encoding });
    expect(await outcome(answer)).toEqual([415, 'unsupported_media_type']);
  });

  test('is answered with everything that is wrong with it', async () => {
    const body = { name: 7, projects: [], scopes: ['run:read', 'nonsense'], extra: 1 };
    const answer = await api.call('/v1/keys', { body });
    expect(answer.status).toBe(422);
    const { code, errors } = (await answer.json()) as { code: string; errors: { pointer: string }[] };
    expect(code).toBe('request_invalid');
    expect(errors.map(({ pointer }) => pointer).sort()).toEqual([
      '/extra',
      '/name',
      '/projects',
      '/scopes/1',
    ]);
  });

  test('is validated together with the query', async () => {
    const answer = await api.call('/v1/runs?limit=999&sate=failed&since=yesterday');
    const { errors } = (await answer.json()) as { errors: { pointer: string }[] };
    expect(errors.map(({ pointer }) => pointer).sort()).toEqual([
      '/query/limit',
      '/query/sate',
      '/query/since',
    ]);
  });

  test.each(['since', 'until'])('is refused with a year 0 in %s', async (field) => {
    const answer = await api.call(`/v1/runs?${field}=0000-01-01T00:00:00Z`);
    expect(await outcome(answer)).toEqual([422, 'request_invalid']);
  });

  test('that breaks off leaves the server well', async () => {
    const headers = [
      'Host',
      'x',
      'Authorization',
      `Bearer ${api.apiKey}`,
      'Content-Type',
      'application/json',
    ];
    const cut = sendRaw(api.url, { path: '/v1/jobs', method: 'POST', headers }, (request) => {
      request.write('{"job":', () => request.destroy(new Error('cut')));
    });
    await expect(cut).rejects.toThrow('cut');
    expect((await sendRaw(api.url, { path: '/v1/limits', headers })).status).toBe(200);
    expect(api.log.filter((line) => line.includes('"level":50'))).toEqual([]);
  });

  test('keeps what it holds to the byte', async () => {
    const job = { ключ: '😀', z: 1, a: [null, true, 1.5e-7], '': { nested: '\u2028"\\' } };
    const { job_id } = (await (await post(JSON.stringify({ job }))).json()) as { job_id: string };
    const stored = (await (await api.call(`/v1/jobs/${job_id}`)).json()) as { job: unknown };
    expect(JSON.stringify(stored.job)).toBe(JSON.stringify(job));
  });
});

describe('a run', () => {
  const definition = (length: number) => ({
    pipeline: 'p',
    version: '1',
    description: 'x'.repeat(length),
    steps: [{ id: 'a', capability: 'b' }],
  });

  test('may bring a definition larger than other bodies, but no larger job', async () => {
    const send = (body: object) => api.call('/v1/runs', { body });
    expect((await send({ definition: definition(limit * 2) })).status).toBe(202);
    const job = { text: 'x'.repeat(limit) };
    expect(await outcome(await send({ definition: definition(1), job }))).toEqual([422, 'job_invalid']);
  });
});

describe('a definition', () => {
  test('has its own limit', async () => {
    const text = (length: number) => `# ${'x'.repeat(length - 2)}`;
    const send = (length: number) =>
      api.call('/v1/pipelines/validate', {
        body: text(length),
        headers: { 'content-type': 'application/yaml' },
      });
    expect((await send(16_384)).status).toBe(200);
    expect((await send(16_385)).status).toBe(413);
  });

  test('may not hold a prototype key', async () => {
    const headers = { 'content-type': 'application/json' };
    const answer = await api.call('/v1/pipelines', { body: '{"__proto__":{}}', headers });
    expect(await outcome(answer)).toEqual([400, 'proto_key']);
  });

  test('in YAML may not smuggle NUL into the database', async () => {
    const body = 'pipeline: p\nversion: "1"\nlabels: {a: "\\0"}\nsteps: [{id: a, capability: b}]\n';
    const answer = await api.call('/v1/pipelines', { body, headers: { 'content-type': 'application/yaml' } });
    expect(await outcome(answer)).toEqual([422, 'definition_invalid']);
  });
});
