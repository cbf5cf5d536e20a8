/** `/execute`, `/advise` and `/v1/escalations` as an outside caller uses them. */

import type {
  AdviseAnswer,
  Escalation,
  EscalationAdvice,
  EscalationAttempt,
  ExecuteAnswer,
} from '@capstan/core/contracts/escalation';
import type { Problem } from '@capstan/core/contracts/problem';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { readJson } from '../support/api.ts';
import { type LadderWorld, startLadderWorld } from '../support/ladders.ts';
import { isLong } from '../support/long.ts';
import { readShown } from '../support/model-levels.ts';
import { waitFor } from '../support/wait.ts';

let world: LadderWorld;
let project: string;
let from: number;

beforeAll(async () => {
  world = await startLadderWorld({ fast: 0, capable: 0.01, reasoning: 0.02, top: 0.03 });
});
afterAll(() => world.close());
beforeEach(async () => {
  project = await world.newProject();
  from = world.provider.requests.length;
});

function post<Body>(path: string, body: object): Promise<[number, Body]> {
  return readJson<Body>(world.call(project, path, { body }));
}
async function execute(body: object): Promise<ExecuteAnswer> {
  const [status, answer] = await post<ExecuteAnswer>('/execute', body);
  if (status !== 200) throw new Error(JSON.stringify(answer));
  return answer;
}
async function advise(body: object): Promise<AdviseAnswer> {
  const [status, answer] = await post<AdviseAnswer>('/advise', body);
  if (status !== 200) throw new Error(JSON.stringify(answer));
  return answer;
}
function kinds() {
  return world
    .shown()
    .slice(from)
    .map(({ kind, model }) => `${kind} ${model}`);
}

const job = {
  job_type: 'caption',
  prompt: 'Write a caption.',
  escalation_history: [],
  escalation_advice: [],
};
const advice = { instructions: 'be brief', reasoning: 'it was long', suggested_executor_level: 2 };
const fails = { give_up: true, reason: 'the scene is not clear' };
function attemptOf(level: number, error: string): EscalationAttempt {
  return {
    level,
    label: 'mine',
    attempted_at: 1_700_000_000,
    error,
  };
}

test('a failure brings its advice and the level to come back at, and /advise repeats it without a charge', async () => {
  world.answer(({ kind }) => (kind === 'advise' ? advice : fails));
  const failed = await execute({ ...job, level: 1 });
  expect(failed).toEqual({
    success: false,
    result: null,
    error: 'the executor gave up: the scene is not clear',
    attempt: {
      level: 1,
      label: 'fast model',
      attempted_at: expect.any(Number),
      error: 'the executor gave up: the scene is not clear',
    },
    new_level: 2,
    advice: { ...advice, from_level: 2, label: 'capable model' },
    model_spec: { level: 1, label: 'fast model', capability: 'model.fast', model: 'fast' },
    active_skills: [],
    cost_usd: 0.01,
  });
  const error = failed.error as string;
  const again = await advise({
    from_level: 2,
    job_type: job.job_type,
    error,
    repo_context: '',
    escalation_history: [attemptOf(1, error)],
  });
  expect(again).toEqual(advice);
  expect(kinds()).toEqual(['execute fast', 'advise capable']);
});

test('a success after advice is a skill, and the same skill again is the same id', async () => {
  world.answer(() => ({ result: 'A lake.' }));
  const error = 'the caption has 300 characters, at most 80 are allowed';
  const done = await execute({
    ...job,
    level: 1,
    escalation_history: [attemptOf(0, error)],
    escalation_advice: [{ from_level: 2, label: 'capable model', instructions: 'be brief' }],
  });
  expect(done).toMatchObject({
    success: true,
    result: 'A lake.',
    skill_candidate: {
      source: 'escalation-l2',
      instructions: 'be brief',
      success_count: 1,
      failure_count: 0,
      pattern: { job_type: 'caption', error_patterns: [expect.any(String)] },
    },
  });
  const { id, pattern, instructions, source } = done.skill_candidate as NonNullable<
    typeof done.skill_candidate
  >;
  const [, stored] = await post<{ id: string }>('/skills', { pattern, instructions, source });
  expect(stored.id).toBe(id);
});

test('level 0 answers with the template of a skill, and without a model', async () => {
  const skill = {
    pattern: { job_type: 'caption', repo_signals: ['lang:en'] },
    instructions: 'greet',
    template: 'Hello, {{ input.name }}!',
    source: 'human-fix',
  };
  const [, { id }] = await post<{ id: string }>('/skills', skill);
  const request = { ...job, level: 0, context: { name: 'Ada' }, signals: ['lang:en'] };
  expect(await execute(request)).toMatchObject({ success: true, result: 'Hello, Ada!', active_skills: [id] });
  expect(kinds()).toEqual([]);
  world.answer(() => advice);
  const other = await execute({ ...job, level: 0, context: { name: 'Ada' } });
  expect(other).toMatchObject({
    success: false,
    error: expect.stringContaining('no template'),
    new_level: 2,
  });
});

test('the loop of the specification, run by a client with its own history, ends for a constant error', async () => {
  world.answer(({ kind }) => (kind === 'advise' ? { ...advice, suggested_executor_level: 1 } : fails));
  const history: EscalationAttempt[] = [];
  const given: EscalationAdvice[] = [];
  let level = 0;
  let executions = 0;
  while (level < 5 && executions < 40) {
    executions += 1;
    const lists = { escalation_history: history, escalation_advice: given };
    const { success, error = '' } = await execute({ ...job, level, ...lists });
    if (success || level >= 4) break;
    history.push(attemptOf(level, error));
    const from_level = level + 1;
    const request = { from_level, job_type: 'caption', error, escalation_history: history, repo_context: '' };
    const answer = await advise(request);
    given.push({ ...answer, from_level, label: 'advisor' });
    level = answer.suggested_executor_level ?? 0;
  }
  expect([level, executions]).toEqual([5, 6]);
  const asked = kinds().filter((kind) => kind.startsWith('advise'));
  expect(asked).toEqual([
    'advise fast',
    'advise capable',
    'advise capable',
    'advise reasoning',
    'advise top',
  ]);
});

test('advice that suggests no level is answered with level 0', async () => {
  world.answer(() => ({ instructions: 'say less' }));
  const request = {
    from_level: 1,
    job_type: 'caption',
    error: 'no level',
    escalation_history: [],
    repo_context: '',
  };
  expect(await advise(request)).toEqual({
    instructions: 'say less',
    reasoning: '',
    suggested_executor_level: 0,
  });
});

test('twenty equal requests for advice at once are one question', async () => {
  world.answer(() => advice);
  const request = {
    from_level: 2,
    job_type: 'caption',
    error: 'too long',
    escalation_history: [],
    repo_context: '',
  };
  const answers = await Promise.all(Array.from({ length: isLong ? 20 : 5 }, () => advise(request)));
  expect(new Set(answers.map((answer) => JSON.stringify(answer)))).toEqual(new Set([JSON.stringify(advice)]));
  expect(kinds()).toEqual(['advise capable']);
});

const askedForAdvice = {
  from_level: 2,
  job_type: 'caption',
  error: 'too long',
  escalation_history: [],
  repo_context: '',
};

test('of equal requests at once, what one caller may spend does not refuse another', async () => {
  world.answer(() => advice);
  const errors = ['too long', 'too short', 'too dull', 'too loud'];
  const pairs = errors.map(async (error) => {
    const request = { ...askedForAdvice, error };
    const poor = post('/advise', { ...request, max_usd: 0.005 });
    const rich = post<AdviseAnswer>('/advise', request);
    await poor;
    return rich;
  });
  expect(await Promise.all(pairs)).toEqual(errors.map(() => [200, advice]));
  expect(kinds()).toEqual(errors.map(() => 'advise capable'));
});

test('a caller that leaves does not end the advice that another one waits for', async () => {
  let answer: () => void = () => undefined;
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  world.provider.answer(async ({ body }) => {
    const isAdvice = readShown(body).kind === 'advise';
    if (isAdvice) await answered;
    return { text: JSON.stringify(isAdvice ? advice : fails) };
  });
  const history = [attemptOf(1, `the executor gave up: ${fails.reason}`)];
  const staying = advise({
    ...askedForAdvice,
    error: history[0]?.error,
    escalation_history: history,
    prompt: job.prompt,
  });
  await waitFor('the advisor to be asked', () => kinds().includes('advise capable'));
  const key = await world.api.createKey({ scopes: ['escalate'], projects: [project] });
  const leaving = new AbortController();
  const left = fetch(`${world.api.url}/execute`, {
    method: 'POST',
    body: JSON.stringify({ ...job, level: 1 }),
    signal: leaving.signal,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
  }).catch(() => 'left');
  await waitFor('the executor to be asked', () => kinds().includes('execute fast'));
  leaving.abort();
  expect(await left).toBe('left');
  answer();
  expect(await staying).toEqual(advice);
  expect(kinds()).toEqual(['advise capable', 'execute fast']);
});

test('an output that a person gives is checked by result_schema, and the review stays open', async () => {
  const result_schema = { type: 'object', properties: { frames: { type: 'integer' } }, required: ['frames'] };
  const start = { ...onlyJob, escalation_level: 5, result_schema };
  const { escalation_id } = await world.startJob(project, start);
  const { review_id } = await world.escalation(project, escalation_id);
  const decide = (output: object) =>
    readJson<Problem>(
      world.call(project, `/v1/reviews/${review_id}/decision`, {
        body: { action: 'output', output },
        headers: { 'if-match': '"1"' },
      }),
    );
  const [status, { code, detail, errors }] = await decide({ frames: 'seven' });
  expect([status, code, errors?.[0]?.pointer]).toEqual([422, 'request_invalid', '/output/frames']);
  expect(detail).toContain('result_schema');
  expect((await decide({ frames: 7 }))[0]).toBe(200);
  await world.decided(review_id as string);
  const ended = await world.escalation(project, escalation_id);
  expect(ended).toMatchObject({ state: 'succeeded', result: { frames: 7 } });
});

test('level 5 opens a review and answers the text of the specification', async () => {
  const answer = await execute({ ...job, level: 5 });
  expect(answer).toMatchObject({
    success: false,
    result: null,
    model_spec: { level: 5, label: 'human' },
    error: 'the escalation ladder is exhausted and human review is required',
  });
  const [status] = await readJson(world.call(project, `/v1/reviews/${answer.review_id}`));
  expect(status).toBe(200);
  expect(kinds()).toEqual([]);
});

test('a failure at level 4 opens the review and answers the text of the specification', async () => {
  world.answer(() => fails);
  const answer = await execute({ ...job, level: 4, escalation_history: [attemptOf(3, 'too long')] });
  expect(answer).toMatchObject({
    success: false,
    result: null,
    error: 'the escalation ladder is exhausted and human review is required',
    new_level: 5,
  });
  const [status, review] = await readJson<{ payload: { history: object[] } }>(
    world.call(project, `/v1/reviews/${answer.review_id}`),
  );
  expect(status).toBe(200);
  expect(review.payload.history).toMatchObject([
    { level: 3, error: 'too long' },
    { level: 4, error: 'the executor gave up: the scene is not clear' },
  ]);
  expect(answer.attempt).toEqual(review.payload.history[1]);
});

test('the answer of a failure holds the attempt that a client appends to its history', async () => {
  world.answer(({ kind }) => (kind === 'advise' ? advice : fails));
  const { attempt, error } = await execute({ ...job, level: 1 });
  expect(attempt).toEqual({ level: 1, label: 'fast model', attempted_at: expect.any(Number), error });
  world.answer(() => ({ result: 7 }));
  expect(await execute({ ...job, level: 1 })).not.toHaveProperty('attempt');
});

test('lists of the greatest length are accepted, and the ladder reads all of them', async () => {
  world.answer(() => fails);
  const escalation_history = Array.from({ length: 1_000 }, (_, n) => attemptOf(0, `failure ${n}`));
  const escalation_advice = Array.from({ length: 1_000 }, (_, n) => ({
    from_level: 1,
    label: 'mine',
    instructions: `try ${n}`,
  }));
  const answer = await execute({ ...job, level: 4, escalation_history, escalation_advice });
  const [, { payload }] = await readJson<{ payload: { history: object[]; advice: object[] } }>(
    world.call(project, `/v1/reviews/${answer.review_id}`),
  );
  expect([payload.history.length, payload.advice.length]).toEqual([1_001, 1_000]);
});

test('advice that costs more than the caller allows is not asked for', async () => {
  world.answer(() => advice);
  const request = {
    from_level: 2,
    job_type: 'caption',
    error: 'too long',
    escalation_history: [],
    repo_context: '',
  };
  const [status, problem] = await post<Problem>('/advise', { ...request, max_usd: 0.005 });
  expect([status, problem.code]).toEqual([402, 'ceiling_too_low']);
  expect(kinds()).toEqual([]);
});

test('a schema that cannot be used is refused before anything is asked', async () => {
  const result_schema = { type: 'array', items: { $ref: 'https://example.com/schema' } };
  const [status, problem] = await post<Problem>('/v1/escalations', { ...onlyJob, result_schema });
  expect([status, problem.code, problem.errors?.[0]?.pointer]).toEqual([
    422,
    'request_invalid',
    '/result_schema',
  ]);
});

const onlyJob = { job_type: job.job_type, prompt: job.prompt };

test.each([
  ['no context', undefined, { clip: 'a.mp4', tries: 3 }],
  ['an object', { clip: 'b.mp4', lang: 'en' }, { clip: 'b.mp4', tries: 3, lang: 'en' }],
  ['another context', ['b.mp4'], { clip: 'a.mp4', tries: 3, context: ['b.mp4'] }],
])('a job may have fields of its own, and any model_spec of before: with %s', async (_, context, shown) => {
  const body = { ...onlyJob, context, clip: 'a.mp4', tries: 3, model_spec: { provider: 'x', deep: [1] } };
  const [status, { payload }] = await post<Escalation>('/v1/escalations', body);
  expect([status, payload.context, payload.model_spec.level]).toEqual([202, shown, 0]);
  const again = await post<Escalation>('/v1/escalations', { ...onlyJob, ...payload });
  expect([again[0], again[1].payload.context]).toEqual([202, shown]);
});

test('an escalation is shown to its project alone, and needs the scope', async () => {
  const answer = await world.call(project, '/v1/escalations', { body: onlyJob });
  const created = (await answer.json()) as { escalation_id: string };
  expect([answer.status, answer.headers.get('location')]).toEqual([
    202,
    `/v1/escalations/${created.escalation_id}`,
  ]);
  const other = await world.newProject();
  const [foreign] = await readJson(world.call(other, `/v1/escalations/${created.escalation_id}`));
  const [missing] = await readJson(world.call(project, '/v1/escalations/esc_none'));
  const key = await world.api.createKey({ scopes: ['run:read'] });
  const headers = { authorization: `Bearer ${key}` };
  const [scopeless] = await readJson(world.api.call('/execute', { body: { ...job, level: 0 }, headers }));
  expect([foreign, missing, scopeless]).toEqual([404, 404, 403]);
});
