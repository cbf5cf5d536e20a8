import { afterAll, beforeAll, expect, test } from 'vitest';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
  await api.call('/v1/pipelines', {
    body: {
      pipeline: 'drawn',
      version: '1',
      steps: [
        { id: 'first', capability: 'concat' },
        { id: 'rest', wait: '1s', depends_on: ['first'] },
        { id: 'ask', review: { title: 'Good?' }, depends_on: ['rest'] },
      ],
    },
  });
});
afterAll(() => api?.close());

test('a version is drawn as an image that loads and runs nothing', async () => {
  const answer = await api.call('/v1/pipelines/drawn/versions/1/graph.svg');
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('image/svg+xml; charset=utf-8');
  expect(answer.headers.get('content-security-policy')).toMatch(/^default-src 'none'/);
  const svg = await answer.text();
  for (const text of ['first', 'concat', 'wait 1s', 'review']) expect(svg).toContain(text);
  expect(svg).not.toMatch(/<script|on\w+=/);
  expect(await (await api.call('/v1/pipelines/drawn/graph.svg')).text()).toBe(svg);
});

test('a missing part is not drawn', async () => {
  const [status, problem] = await readJson(api.call('/v1/pipelines/absent/graph.svg'));
  expect([status, problem.code]).toEqual([404, 'not_found']);
  const [other] = await readJson(api.call('/v1/pipelines/drawn/versions/2/graph.svg'));
  expect(other).toBe(404);
});
