/** Numbers that a double does not keep: refused in what users send, passed on as they are in what instances answer. */

import type { Problem } from '@capstan/core/contracts/problem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import { registerInstance } from '../support/direct-calls.ts';
import { answerText, type Instance } from '../support/fleet.ts';

let api: TestApi;
let instance: Instance;
beforeAll(async () => {
  api = await startTestApi();
  const output = { type: 'object', properties: { id: { type: 'integer', minimum: 1 } } };
  instance = await registerInstance(api, { name: 'seeds', output, deterministic: true });
});
afterAll(async () => {
  await instance.stop();
  await api.close();
});

function post(path: string, body: string, headers: Record<string, string> = {}) {
  return api.call(path, { body, headers: { 'content-type': 'application/json', ...headers } });
}

const definition = '{"pipeline":"p","version":"1","steps":[{"id":"a","capability":"seeds","input":{"n":%}}]}';

describe('a body is refused for a number that would change', () => {
  test.each([
    [
      '/v1/runs',
      `{"definition":${definition.replace('%', '1')},"job":{"seed":7615917337495251231}}`,
      '/job/seed',
    ],
    [
      '/v1/runs',
      `{"definition":${definition.replace('%', '9007199254740993')}}`,
      '/definition/steps/0/input/n',
    ],
    ['/v1/runs/bulk', '{"pipeline":"p","jobs":[{"job":{}},{"job":{"a":[1,-1e400]}}]}', '/jobs/1/job/a/1'],
    ['/v1/jobs', '{"job":{"at":1700000000.123456789}}', '/job/at'],
    ['/v1/schedules', '{"name":"s","cron":"@daily","pipeline":"p","job":{"x":1e999}}', '/job/x'],
    ['/v1/capabilities/seeds/exec', '{"input":{"seed":0.1234567890123456789012}}', '/input/seed'],
    ['/v1/reviews/rev_1/decision', '{"input":{"id":18446744073709551615}}', '/input/id'],
    [
      '/v1/plan',
      `{"definition":${definition.replace('%', '1')},"job":{"seed":9007199254740993}}`,
      '/job/seed',
    ],
  ])('%s %s', async (path, body, pointer) => {
    const [status, problem] = await readJson<Problem>(post(path, body));
    const number = /[-0-9.]{16,}|-?1e[0-9]+/.exec(body)?.[0];
    expect([status, JSON.stringify(problem)]).toEqual([
      422,
      expect.stringContaining(`the number ${number} `),
    ]);
    if (pointer === undefined) return;
    expect(problem).toMatchObject({
      code: 'request_invalid',
      errors: [{ pointer, code: 'number_inexact', suggestion: `write it as text: "${number}"` }],
    });
  });

  test.each([
    ['application/json', definition.replace('%', '9007199254740993'), [1, 84]],
    [
      'application/yaml',
      'pipeline: p\nversion: "1"\nsteps:\n- {id: a, capability: seeds, input: {n: 1e999}}\n',
      [4, 41],
    ],
  ])('a definition as %s, with line and column', async (type, text, [line, column]) => {
    const answer = await api.call('/v1/pipelines/validate', {
      body: text,
      headers: { 'content-type': type },
    });
    expect(await answer.json()).toMatchObject({
      valid: false,
      findings: [{ code: 'number_inexact', pointer: '/steps/0/input/n', line, column }],
    });
  });

  test('whereas numbers that are kept, in any form, arrive', async () => {
    const answer = await post(
      '/v1/jobs',
      '{"job":{"a":[9007199254740992,0.10000000000000001,1e22,"9007199254740993"]}}',
    );
    expect(answer.status).toBe(201);
  });
});

describe('a direct call answers what the instance answered', () => {
  const output =
    '{"id":7615917337495251231,"list":[-0.1234567890123456789012,{"at":1700000000.123456789}],"n":1.5}';

  test('also to a repeated key, from the cache, and to its own shape', async () => {
    instance.handle = (_, response) => answerText(response, `{"ok":true,"output":${output}}`);
    const call = async (headers: Record<string, string>, more = '') => {
      const answer = await post('/v1/capabilities/seeds/exec', `{"input":{}${more}}`, headers);
      return answer.text();
    };
    const cached = ',"cache":{"ttl_seconds":60}';
    const key = { 'idempotency-key': 'one' };
    const texts = [
      await call({}),
      await call(key),
      await call(key),
      await call({}, cached),
      await call({}, cached),
    ];
    for (const text of texts) expect(text).toContain(`"output":${output}`);
  });

  test('a number too large for JavaScript is refused with the reason', async () => {
    instance.handle = (_, response) => answerText(response, '{"ok":true,"output":{"id":1e999}}');
    const [status, problem] = await readJson<Problem>(post('/v1/capabilities/seeds/exec', '{"input":{}}'));
    expect([status, problem.code, problem.detail]).toEqual([
      502,
      'response_invalid',
      expect.stringContaining('a number that is too large'),
    ]);
  });

  test.each([
    ['{"id":-7615917337495251231}', '/id must be >= 1'],
    ['{"id":1234567.1234567890123}', '/id must be integer'],
  ])('%s is checked against the schema', async (wrong, fault) => {
    instance.handle = (_, response) => answerText(response, wrong);
    const [, problem] = await readJson<Problem>(post('/v1/capabilities/seeds/exec', '{"input":{}}'));
    expect([problem.code, problem.detail]).toEqual(['output_invalid', expect.stringContaining(fault)]);
  });

  test('a text that stands for a number inside Capstan is none of an answer', async () => {
    instance.handle = (_, response) => answerText(response, String.raw`{"id":1,"t":"\u0000number:1"}`);
    const [, problem] = await readJson<Problem>(post('/v1/capabilities/seeds/exec', '{"input":{}}'));
    expect(problem.code).toBe('response_invalid');
  });
});
