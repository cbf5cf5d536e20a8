/** An outside caller without models: templates, and people. */

import type { AdviseAnswer, ExecuteAnswer } from '@capstan/core/contracts/escalation';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const job = { job_type: 'caption', prompt: 'Write a caption.' };
function post<Body>(path: string, body: object) {
  return readJson<Body>(api.call(path, { body }));
}
const exhausted = expect.stringContaining('the escalation ladder is exhausted and human review is required');

test('level 0 fails without a template and sends the caller to a person', async () => {
  const [status, answer] = await post<ExecuteAnswer>('/execute', { ...job, level: 0 });
  expect([status, answer]).toEqual([
    200,
    {
      success: false,
      result: null,
      error: 'level 0 has no template for a job of type caption',
      attempt: {
        level: 0,
        label: 'static template',
        attempted_at: expect.any(Number),
        error: 'level 0 has no template for a job of type caption',
      },
      new_level: 5,
      active_skills: [],
      cost_usd: 0,
      model_spec: { level: 0, label: 'static template', capability: null, model: null },
    },
  ]);
});

test('a level without a model falls through to a person, who is asked', async () => {
  const [status, answer] = await post<ExecuteAnswer>('/execute', { ...job, level: 2 });
  expect([status, answer]).toMatchObject([200, { success: false, error: exhausted, new_level: 5 }]);
  const review = await api.db('review').where({ review_id: answer.review_id }).first('kind', 'state');
  expect(review).toEqual({ kind: 'escalation', state: 'open' });
});

test('advice is to ask a person, in the documented shape', async () => {
  const [status, answer] = await post<AdviseAnswer>('/advise', {
    from_level: 1,
    job_type: 'caption',
    error: 'too long',
    escalation_history: [],
    repo_context: '',
  });
  expect([status, answer]).toEqual([
    200,
    { instructions: expect.any(String), reasoning: exhausted, suggested_executor_level: 5 },
  ]);
});
