/** The ladder of a job by itself. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type LadderWorld, startLadderWorld } from '../../support/ladders.ts';

let world: LadderWorld;
let project: string;
let from: number;

beforeAll(async () => {
  world = await startLadderWorld({ fast: 0, capable: 0 });
});
afterAll(() => world.close());
beforeEach(async () => {
  project = await world.newProject();
  from = world.provider.requests.length;
});

const job = { job_type: 'caption', prompt: 'Write a caption.', context: { scene: 'a lake' } };
const advice = { instructions: 'answer with a number', reasoning: '', suggested_executor_level: 1 };
function kinds() {
  return world
    .shown()
    .slice(from)
    .map(({ kind, model }) => `${kind} ${model}`);
}

test('a job climbs from the template to a model that was advised', async () => {
  world.answer(({ kind }) =>
    kind === 'advise' ? advice : { result: { caption: 'A lake.' }, used_skills: [] },
  );
  const end = await world.climb(await world.startJob(project, job));
  expect(end.command).toMatchObject({ outcome: 'succeeded' });
  expect(kinds()).toEqual(['advise fast', 'execute fast']);
  expect(await world.escalation(project, end.escalation_id)).toMatchObject({
    state: 'succeeded',
    result: { caption: 'A lake.' },
    escalation_level: 1,
    job_type: 'caption',
    payload: {
      prompt: job.prompt,
      context: job.context,
      active_skills: [],
      escalation_history: [{ level: 0, label: 'static template' }],
      escalation_advice: [{ from_level: 1, label: 'fast model', instructions: advice.instructions }],
      model_spec: { level: 1, label: 'fast model', capability: 'model.fast', model: 'fast' },
    },
  });
});

test('the lists of a ladder are kept once, where the database lets them grow only', async () => {
  world.answer(({ kind }) => (kind === 'advise' ? advice : { give_up: true, reason: 'no way' }));
  const { escalation_id } = await world.climb(await world.startJob(project, job));
  const { db } = world.api;
  const row = await db('escalation').where({ escalation_id }).first();
  expect(Object.keys(row.ladder)).not.toEqual(expect.arrayContaining(['history']));
  expect(JSON.stringify(row.ladder)).not.toContain('"advice":');
  const [attempt] = row.escalation_history;
  expect(attempt).toEqual({ ...attempt, level: 0, fingerprint: expect.stringMatching(/./) });
  const { payload } = await world.escalation(project, escalation_id);
  expect([payload.escalation_history, payload.escalation_advice].flat()).toEqual(
    [row.escalation_history, row.escalation_advice]
      .flat()
      .map(({ fingerprint: _, ...shown }: { fingerprint: string }) => shown),
  );
  const shortened = db('escalation').where({ escalation_id }).update({ escalation_history: '[]' });
  await expect(shortened).rejects.toThrow(/only grow/);
});

test('advice that suggests no level leads back to level 0', async () => {
  const { suggested_executor_level: _, ...open } = advice;
  world.answer(({ kind, model }) => {
    if (kind !== 'advise') return { result: 'done', used_skills: [] };
    return model === 'fast' ? open : { ...advice, instructions: 'another way' };
  });
  const end = await world.climb(await world.startJob(project, job));
  expect(end.command).toMatchObject({ outcome: 'succeeded' });
  expect(kinds()).toEqual(['advise fast', 'advise capable', 'execute fast']);
  const { payload } = await world.escalation(project, end.escalation_id);
  expect(payload.escalation_advice).toMatchObject([{ suggested_executor_level: 0 }, {}]);
});

test('a result that does not match its schema is a failure that the advisor receives', async () => {
  world.answer(({ kind, data }) => {
    if (kind === 'advise') return advice;
    return { result: (data.advice as unknown[]).length === 0 ? 'seven' : 7 };
  });
  const start = { ...job, escalation_level: 1, result_schema: { type: 'integer' } };
  const end = await world.climb(await world.startJob(project, start));
  expect(end.command).toMatchObject({ outcome: 'succeeded' });
  expect(kinds()).toEqual(['execute fast', 'advise capable', 'execute fast']);
  const [, asked] = world.shown().slice(from);
  expect(asked?.data.error).toMatch(/does not match result_schema.*must be integer/);
});

test('a skill without a template is shown to the next executor before anybody is asked for advice', async () => {
  world.answer(({ kind, data }) => {
    if (kind === 'advise') return advice;
    const known = [...(data.advice as unknown[]), ...(data.skills as { id: string }[])];
    const used_skills = (data.skills as { id: string }[]).map(({ id }) => id);
    return { result: known.length === 0 ? 'seven' : 7, used_skills };
  });
  const start = { ...job, escalation_level: 1, result_schema: { type: 'integer' } };
  const first = await world.climb(await world.startJob(project, start));
  const skillId = first.command.type === 'end' && 'skill_id' in first.command ? first.command.skill_id : null;
  from = world.provider.requests.length;
  const second = await world.climb(await world.startJob(project, start));
  expect(kinds()).toEqual(['execute fast', 'execute fast']);
  const [, shown] = world.shown().slice(from);
  expect(shown?.data.skills).toEqual([
    { id: skillId, confidence: '100 %', use_as: 'hint', instructions: advice.instructions },
  ]);
  const { payload } = await world.escalation(project, second.escalation_id);
  expect([payload.active_skills, payload.escalation_advice]).toEqual([[skillId], []]);
  const uses = await world.api.db('skill_use').where({ skill_id: skillId }).select('level', 'outcome');
  expect(uses).toEqual([{ level: 1, outcome: 'success' }]);
});

test('with any advice the ladder ends, and a review is opened', async () => {
  let said = 0;
  world.answer(({ kind }) => {
    said += 1;
    return kind === 'advise'
      ? { ...advice, instructions: `advice ${said}` }
      : { give_up: true, reason: `no way ${'x'.repeat(said)}` };
  });
  const end = await world.climb(await world.startJob(project, job));
  expect(end.command).toMatchObject({
    outcome: 'review',
    error: {
      message: expect.stringContaining('the escalation ladder is exhausted and human review is required'),
    },
  });
  expect(kinds().length).toBeLessThanOrEqual(26);
});

test('a person may advise: the executor is shown it, and its success is a human fix', async () => {
  world.answer(({ kind, data }) => {
    if (kind === 'advise') return { ...advice, suggested_executor_level: 5 };
    const told = JSON.stringify(data.advice).includes('say seven');
    return told ? { result: 7 } : { give_up: true, reason: 'I do not know the number' };
  });
  const asked = await world.climb(await world.startJob(project, { ...job, escalation_level: 1 }));
  const { review_id } = await world.escalation(project, asked.escalation_id);
  const decision = { action: 'advise', instructions: 'say seven', level: 1 };
  const headers = { 'if-match': '"1"' };
  const decided = await world.call(project, `/v1/reviews/${review_id}/decision`, { body: decision, headers });
  expect(decided.status).toBe(200);
  const end = await world.climb(await world.decided(review_id as string));
  expect(end.command).toMatchObject({ outcome: 'succeeded' });
  const skill = await world.api.db('skill').where({ project_id: project }).first('source');
  expect(skill).toEqual({ source: 'human-fix' });
});

test('out of time asks a person once; a cancel after that takes the question back', async () => {
  const place = await world.startJob(project, job);
  const late = await world.stop(place, 'timed_out');
  expect(late.command).toMatchObject({ outcome: 'review', error: { code: 'escalation_timeout' } });
  expect(await world.stop(place, 'timed_out')).toEqual(late);
  const gone = await world.stop(late, 'cancel_requested');
  expect(gone.command).toMatchObject({ outcome: 'cancelled', error: { code: 'escalation_cancelled' } });
  const review = await world.api.db('review').where({ escalation_id: place.escalation_id }).first('state');
  expect(review).toEqual({ state: 'cancelled' });
  expect(await world.advance(gone)).toEqual(gone);
});

test('a job that brings its lists along continues from them', async () => {
  world.answer(({ kind, data }) => {
    if (kind === 'advise') return advice;
    return { result: (data.advice as unknown[]).length < 2 ? 'seven' : 7, used_skills: [] };
  });
  const error = 'the number of frames is not an integer';
  const escalation_history = [{ level: 1, label: 'mine', attempted_at: 1_700_000_000, error }];
  const escalation_advice = [{ from_level: 1, label: 'fast model', instructions: 'count them' }];
  const place = await world.startJob(project, {
    ...job,
    escalation_level: 1,
    result_schema: { type: 'integer' },
    escalation_history,
    escalation_advice,
    model_spec: { level: 1, label: 'fast model', capability: 'model.fast', model: 'fast' },
    active_skills: [],
  });
  const created = await world.escalation(project, place.escalation_id);
  expect(created.payload).toMatchObject({ escalation_history, escalation_advice });
  const end = await world.climb(place);
  expect(end.command).toMatchObject({ outcome: 'succeeded' });
  const { payload } = await world.escalation(project, place.escalation_id);
  expect(payload.escalation_history[0]).toEqual(escalation_history[0]);
  expect(payload.escalation_advice[0]).toEqual(escalation_advice[0]);
  expect(kinds()).toEqual(['execute fast', 'advise capable', 'execute fast']);
  const [asked] = world.shown().slice(from);
  expect(JSON.stringify(asked?.data)).toContain('count them');
});

test('a job of more than a thousand keys is accepted', async () => {
  const escalation_history = Array.from({ length: 400 }, (_, n) => ({
    level: 1,
    label: 'mine',
    attempted_at: n,
    error: `attempt ${n} failed`,
  }));
  const place = await world.startJob(project, { ...job, escalation_level: 5, escalation_history });
  const { payload } = await world.escalation(project, place.escalation_id);
  expect(payload.escalation_history).toHaveLength(400);
});

test('a job that begins at level 5 is a question to a person at once', async () => {
  const place = await world.startJob(project, { ...job, escalation_level: 5 });
  expect(place.command).toMatchObject({ outcome: 'review' });
  expect(kinds()).toEqual([]);
});

test('the skill of a caller who may not vouch stays a candidate and gains nothing by being found again', async () => {
  world.answer(({ kind, data }) => {
    if (kind === 'advise') return advice;
    return { result: (data.advice as unknown[]).length === 0 ? 'seven' : 7, used_skills: [] };
  });
  const start = { ...job, escalation_level: 1, result_schema: { type: 'integer' } };
  const stranger = await world.api.createKey({ scopes: ['escalate'], projects: [project] });
  const skills = () => world.api.db('skill').where({ project_id: project }).select('trust', 'success_count');
  for (const _ of [1, 2]) {
    const headers = { authorization: `Bearer ${stranger}` };
    const created = await world.api.call('/v1/escalations', { body: start, headers });
    const { escalation_id } = (await created.json()) as { escalation_id: string };
    const end = await world.climb(await world.advance({ escalation_id, transition: -1 }));
    expect(end.command).toMatchObject({ outcome: 'succeeded', skill_id: expect.any(String) });
    expect(await skills()).toEqual([{ trust: 'candidate', success_count: 1 }]);
  }
  await world.climb(await world.startJob(project, start));
  expect(await skills()).toEqual([{ trust: 'trusted', success_count: 2 }]);
});
