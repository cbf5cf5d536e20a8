import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.ts';
import { anInstance } from '../support/factories.ts';
import { sendRaw } from '../support/raw-request.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
  await anInstance(api.db, { name: 'b' });
});
afterAll(() => api.close());

async function problemOf(answer: Response) {
  return (await answer.json()) as Record<string, unknown>;
}

describe('a path', () => {
  test('that does not exist is 404, as a problem', async () => {
    const answer = await api.call('/v1/nothing');
    expect(answer.headers.get('content-type')).toBe('application/problem+json');
    expect(await problemOf(answer)).toMatchObject({
      status: 404,
      code: 'not_found',
      instance: '/v1/nothing',
    });
  });

  test.each([
    ['DELETE', '/v1/pipelines', 'GET, HEAD, POST'],
    ['PUT', '/v1/runs/run_1/cancel', 'POST'],
    ['POST', '/v1/media/job_1/a/b.txt', 'DELETE, GET, HEAD, PUT'],
    ['PROPFIND', '/v1/jobs', 'POST'],
  ])('with the method %s at %s is 405 with Allow: %s', async (method, path, allow) => {
    const answer = await api.call(path, { method });
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, allow]);
    expect(await problemOf(answer)).toMatchObject({ code: 'method_not_allowed' });
  });

  test('is case-sensitive', async () => {
    expect((await api.call('/V1/pipelines')).status).toBe(404);
  });

  test.each(['/v1/runs/run_%00', '/v1/runs?pipeline=a%00b', '/v1/jobs/%00'])(
    'may not hold NUL: %s',
    async (path) => {
      expect(await problemOf(await api.call(path))).toMatchObject({ status: 422, code: 'request_invalid' });
    },
  );

  test.each(['/v1/runs/%E0%A4%A', '/v1/capabilities/%ff', "/v1/jobs/'; drop table job; --"])(
    'that is damaged is answered, not a fault: %s',
    async (path) => {
      const { status } = await api.call(path);
      expect([404, 422]).toContain(status);
    },
  );
});

describe('a thing of another project', () => {
  test('is answered like a missing one', async () => {
    const other = await api.createProject('other');
    const headers = { authorization: `Bearer ${other.apiKey}` };
    const pipeline = { pipeline: 'secret', version: '1', steps: [{ id: 'a', capability: 'b' }] };
    await api.call('/v1/pipelines', { headers, body: pipeline });
    const job = (await (await api.call('/v1/jobs', { headers, body: { job: {} } })).json()) as {
      job_id: string;
    };
    const run = (await (await api.call('/v1/runs', { headers, body: { pipeline: 'secret' } })).json()) as {
      run_id: string;
    };
    await api.call(`/v1/media/${job.job_id}/a.txt`, { method: 'PUT', headers, body: 'x' });
    const pairs = [
      ['GET', `/v1/jobs/${job.job_id}`, '/v1/jobs/job_missing'],
      ['GET', `/v1/runs/${run.run_id}`, '/v1/runs/run_missing'],
      ['GET', `/v1/runs/${run.run_id}/steps/a`, '/v1/runs/run_missing/steps/a'],
      ['GET', `/v1/runs/${run.run_id}/events`, '/v1/runs/run_missing/events'],
      ['GET', `/v1/runs/${run.run_id}/steps/a/items`, '/v1/runs/run_missing/steps/a/items'],
      ...['pause', 'resume', 'cancel'].map(
        (act) => ['POST', `/v1/runs/${run.run_id}/${act}`, `/v1/runs/run_missing/${act}`] as const,
      ),
      ['GET', '/v1/pipelines/secret', '/v1/pipelines/missing'],
      ['GET', '/v1/pipelines/secret/aliases', '/v1/pipelines/missing/aliases'],
      ['GET', '/v1/pipelines/secret/versions', '/v1/pipelines/missing/versions'],
      ['GET', '/v1/pipelines/secret/versions/1', '/v1/pipelines/missing/versions/1'],
      ['GET', `/v1/media/${job.job_id}/a.txt`, '/v1/media/job_missing/a.txt'],
      ['DELETE', `/v1/media/${job.job_id}/a.txt`, '/v1/media/job_missing/a.txt'],
    ] as const;
    for (const [method, foreign, missing] of pairs) {
      const seen = await problemOf(await api.call(foreign, { method }));
      const expected = await problemOf(await api.call(missing, { method }));
      const withoutNames = ({ status, code, title, detail }: Record<string, unknown>) => ({
        status,
        code,
        title,
        detail: String(detail).replace(/run_[\w-]+|job_[\w-]+|secret|missing/g, 'X'),
      });
      expect(withoutNames(seen)).toEqual(withoutNames(expected));
      expect(seen.status).toBe(404);
      expect((await api.call(foreign, { method, headers })).status).toBeLessThan(400);
    }
  });
});

describe('a request id', () => {
  test('is taken from the request and given back', async () => {
    const answer = await api.call('/livez', { headers: { 'x-request-id': 'trace-42.a' } });
    expect(answer.headers.get('x-request-id')).toBe('trace-42.a');
  });

  test('that could break a log is replaced', async () => {
    const answer = await api.call('/livez', { headers: { 'x-request-id': 'a b"}{' } });
    expect(answer.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  });
});

describe('headers that can be read in two ways', () => {
  test.each([
    ['two hosts', ['Host', 'a', 'Host', 'b', 'Authorization', 'KEY'], 422],
    [
      'two headers `Authorization` that differ',
      ['Host', 'a', 'Authorization', 'KEY', 'Authorization', 'Bearer x'],
      401,
    ],
    ['a second scheme', ['Host', 'a', 'Authorization', 'Basic eDp5', 'X-API-Key', 'KEY'], 401],
    [
      'two projects',
      ['Host', 'a', 'Authorization', 'KEY', 'X-Project-ID', 'prj_a', 'X-Project-ID', 'prj_b'],
      403,
    ],
  ])('are refused: %s', async (_, template, status) => {
    const headers = template.map((value, at) =>
      value === 'KEY' ? (template[at - 1] === 'X-API-Key' ? api.apiKey : `Bearer ${api.apiKey}`) : value,
    );
    expect((await sendRaw(api.url, { path: '/v1/pipelines', headers })).status).toBe(status);
  });
});

describe('an answer', () => {
  test('forbids framing, sniffing and foreign scripts', async () => {
    const { headers } = await api.call('/docs');
    expect(headers.get('content-security-policy')).toMatch(/default-src 'none';script-src 'self'/);
    expect(headers.get('content-security-policy')).not.toContain('unsafe');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('cross-origin-opener-policy')).toBe('same-origin');
  });

  test('has headers of a page only where it can be one', async () => {
    const { headers } = await api.call('/v1/capabilities/none/exec', { method: 'POST', body: {} });
    expect(headers.get('content-security-policy')).toMatch(/frame-ancestors 'none'/);
    expect(headers.has('cross-origin-opener-policy')).toBe(false);
  });

  test('to a fault reveals no detail, the log does', async () => {
    await api.db.raw('alter table job rename to job_gone');
    const answer = await api.call('/v1/jobs', { body: { job: {} }, headers: { 'x-request-id': 'broken-1' } });
    await api.db.raw('alter table job_gone rename to job');
    expect(await problemOf(answer)).toEqual({
      type: '/docs/errors#internal',
      title: expect.any(String),
      status: 500,
      detail: 'unexpected fault',
      instance: '/v1/jobs',
      code: 'internal',
      request_id: 'broken-1',
    });
    const line = api.log.find((entry) => entry.includes('"level":50') && entry.includes('broken-1'));
    expect(line).toContain('relation');
  });

  test('is logged with its route template, never with key or query', async () => {
    await api.call('/v1/runs/run_x?secret=1', { headers: { 'x-request-id': 'logged-1' } });
    const line = JSON.parse(api.log.find((entry) => entry.includes('logged-1')) ?? '{}');
    expect(line).toMatchObject({ method: 'GET', route: '/v1/runs/{id}', project_id: api.projectId });
    expect(JSON.stringify(line)).not.toContain('secret');
  });
});
