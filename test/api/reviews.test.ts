import { randomUUID } from 'node:crypto';
import type { Problem } from '@capstan/core/contracts/problem';
import type { Review, ReviewDecision, ReviewKind, ReviewPayload } from '@capstan/core/contracts/review';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listAudit } from '../../src/db/access/audit.ts';
import { openReview } from '../../src/use-cases/reviews/opening.ts';
import { type CallOptions, readJson, startTestApi, type TestApi } from '../support/api.ts';
import { registerInstance } from '../support/direct-calls.ts';
import { aRun } from '../support/factories.ts';
import type { Instance } from '../support/fleet.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
let instance: Instance;
const schema = {
  type: 'object',
  properties: { rate: { type: 'number', maximum: 48_000 } },
  required: ['rate'],
  additionalProperties: false,
};
beforeAll(async () => {
  api = await startTestApi();
  const output = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] };
  instance = await registerInstance(api, { name: 'resample', input: schema, output });
  await waitFor('its schema to be known', async () => {
    const answer = await api.call('/v1/route', { body: { capability: 'resample', input: { rate: 'fast' } } });
    return (await answer.text()).includes('input_invalid');
  });
});
afterAll(async () => {
  await instance.stop();
  await api.close();
});

type Person = (path: string, options?: CallOptions) => Promise<Response>;

/** A key of its own. */
async function aPerson(projects?: string[]): Promise<Person> {
  const key = await api.createKey({ scopes: ['run:read', 'review:decide'], projects });
  return (path, options = {}) =>
    api.call(path, { ...options, headers: { authorization: `Bearer ${key}`, ...options.headers } });
}

interface Subject {
  readonly kind?: ReviewKind;
  readonly payload?: ReviewPayload;
  readonly due_in_ms?: number;
}

/** Of the first step of a run in the project of the tests. */
async function aReview({ kind = 'escalation', payload = {}, due_in_ms = 60_000 }: Subject = {}) {
  const steps = [{ id: 'a', capability: 'resample', allow_output: true }];
  const { run_id } = await aRun(api.db, { project_id: api.projectId, definition: { steps } });
  const { review_id } = await openReview(api.db, {
    project_id: api.projectId,
    kind,
    reason: 'rate is no number',
    due_in_ms,
    run_id,
    step_id: 'a',
    item: 0,
    escalation_id: `esc_${randomUUID()}`,
    payload: { input: { rate: 'fast' }, ...payload },
  });
  return { review_id, run_id, path: `/v1/reviews/${review_id}` };
}

interface Precondition {
  readonly version?: number;
  readonly key?: string;
}

function decide(
  person: Person,
  path: string,
  decision: ReviewDecision,
  { version = 1, key }: Precondition = {},
) {
  return person(`${path}/decision`, {
    body: decision,
    headers: { 'if-match': `"${version}"`, ...(key === undefined ? {} : { 'idempotency-key': key }) },
  });
}

type Answered = [status: number, body: Review & Problem];

interface ReviewList {
  readonly items: Review[];
  readonly next_cursor: string | null;
}

async function read(path: string): Promise<Review> {
  return (await readJson<Review>(api.call(path)))[1];
}

describe('a decision', () => {
  test('of two people at once is one: the other receives the winner and the decision', async () => {
    const { path, review_id } = await aReview();
    const people = [await aPerson(), await aPerson()];
    const answers = await Promise.all(
      people.map((person) =>
        readJson<Answered[1]>(decide(person, path, { action: 'edit', input: { rate: 44_100 } })),
      ),
    );
    expect(answers.map(([status]) => status).sort()).toEqual([200, 409]);
    const [[, won], [, lost]] = answers.toSorted(([a], [b]) => a - b) as [Answered, Answered];
    expect(won).toMatchObject({
      state: 'resolved',
      version: 2,
      decided_by: expect.stringMatching(/^key_/),
      decision: { action: 'edit', input: { rate: 44_100 } },
    });
    const { state, version, decided_by, decided_at, decision } = won;
    const standing = { review_id, state, version, decided_by, decided_at, decision };
    expect(lost).toMatchObject({
      code: 'state_conflict',
      review: standing,
      detail: expect.stringContaining(`was decided by ${won.decided_by}`),
    });
    const entries = await listAudit(api.db, api.projectId, { subject: review_id, limit: 10 });
    expect(entries).toMatchObject([
      { action: 'review.decided', actor: won.decided_by, data: { decision: { input: { rate: 44_100 } } } },
    ]);
  });

  test('with an input that the capability does not take is refused, and the review stays as it was', async () => {
    const { path } = await aReview({
      payload: { proposals: [{ input: { rate: 96_000 }, patch: [], source: 'repair' }] },
    });
    const person = await aPerson();
    const before = await read(path);
    const edit = decide(person, path, { action: 'edit', input: { rate: 'slow', speed: 1 } });
    const [status, problem] = await readJson(edit);
    expect([status, problem.code]).toEqual([422, 'input_invalid']);
    expect(problem.errors?.map(({ pointer }) => pointer).sort()).toEqual(['/input/rate', '/input/speed']);
    const approve = decide(person, path, { action: 'approve' });
    expect((await approve).status).toBe(422);
    expect(await read(path)).toEqual(before);
    expect((await decide(person, path, { action: 'edit', input: { rate: 1 } })).status).toBe(200);
  });

  test('is checked by what the step declares and the capability answers when it gives the output', async () => {
    const person = await aPerson();
    const { path } = await aReview({ payload: { allow_output: true } });
    const [status, { errors }] = await readJson(decide(person, path, { action: 'output', output: {} }));
    expect([status, errors?.[0]?.pointer]).toEqual([422, '/output/path']);
    expect((await decide(person, path, { action: 'output', output: { path: 'x' } })).status).toBe(200);
  });

  test('needs the version that was read, and only that one', async () => {
    const { path } = await aReview();
    const person = await aPerson();
    const body = { action: 'retry' };
    expect(await readJson(person(`${path}/decision`, { body }))).toMatchObject([
      428,
      { code: 'precondition_required' },
    ]);
    const headers = { 'if-match': '*' };
    expect((await person(`${path}/decision`, { body, headers })).status).toBe(422);
    expect(await readJson(decide(person, path, { action: 'retry' }, { version: 2 }))).toMatchObject([
      409,
      { code: 'state_conflict', review: { state: 'open', version: 1 } },
    ]);
    const etag = (await person(path)).headers.get('etag') as string;
    const answer = await person(`${path}/decision`, { body, headers: { 'if-match': etag } });
    expect([answer.status, etag, answer.headers.get('etag')]).toEqual([200, '"1"', '"2"']);
  });

  test('repeated with its Idempotency-Key, also at the same time, is one and gets the same answer', async () => {
    const { path } = await aReview();
    const person = await aPerson();
    const send = () => decide(person, path, { action: 'reject' }, { key: 'k' });
    const answers = [...(await Promise.all([send(), send(), send()])), await send()];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const bodies = await Promise.all(answers.map((answer) => answer.json()));
    expect(new Set(bodies.map((body) => JSON.stringify(body))).size).toBe(1);
    expect(answers.filter((answer) => answer.headers.has('idempotent-replayed'))).toHaveLength(3);
    expect(await readJson(decide(person, path, { action: 'retry' }, { key: 'k' }))).toMatchObject([
      422,
      { code: 'idempotency_key_reuse' },
    ]);
  });

  const proposal = { input: { rate: 44_100 }, patch: [], source: 'repair' };
  test.each<[string, Subject, Review['actions']]>([
    ['a ladder', {}, ['edit', 'advise', 'retry', 'reject']],
    [
      'a ladder with proposals, whose step allows more',
      { payload: { proposals: [proposal], allow_output: true, optional: true } },
      ['approve', 'edit', 'advise', 'retry', 'output', 'skip', 'reject'],
    ],
    [
      'money of a ladder',
      { kind: 'budget', payload: { optional: true } },
      ['raise', 'edit', 'skip', 'cancel'],
    ],
    ['a step', { kind: 'step' }, ['output', 'reject']],
    ['a step that is optional', { kind: 'step', payload: { optional: true } }, ['output', 'skip', 'reject']],
    ['operation', { kind: 'ops' }, ['edit', 'advise', 'retry', 'reject']],
    ['a skill', { kind: 'skill' }, ['keep', 'edit', 'narrow', 'merge', 'retire']],
  ])('about %s accepts fitting values, and nothing else', async (_, subject, actions) => {
    const { path } = await aReview(subject);
    expect((await read(path)).actions).toEqual(actions);
    const other = actions.includes('skip') || actions.includes('keep') ? 'reject' : 'skip';
    const refused = actions.includes(other) ? 'keep' : other;
    const answer = await readJson(decide(await aPerson(), path, { action: refused }));
    expect(answer).toMatchObject([422, { code: 'request_invalid', errors: [{ pointer: '/action' }] }]);
  });

  test('to approve names one of several proposals', async () => {
    const proposals = [proposal, { ...proposal, input: { rate: 8_000 } }];
    const { path } = await aReview({ payload: { proposals } });
    const person = await aPerson();
    for (const decision of [{ action: 'approve' }, { action: 'approve', proposal: 2 }] as const) {
      expect((await decide(person, path, decision)).status).toBe(422);
    }
    const [, review] = await readJson<Review>(decide(person, path, { action: 'approve', proposal: 1 }));
    expect(review.decision).toEqual({ action: 'approve', proposal: 1 });
  });
});

test('a decision about a skill is done at once, or not made at all', async () => {
  const pattern = { job_type: 'resample', repo_signals: ['cap:resample'] };
  const body = { pattern, instructions: 'write hertz', source: 'test' };
  const [, { id }] = await readJson<{ id: string }>(api.call('/skills', { body }));
  const { review_id } = await openReview(api.db, {
    project_id: api.projectId,
    kind: 'skill',
    reason: 'it fails often',
    skill_id: id,
    payload: {},
    due_in_ms: 60_000,
  });
  const path = `/v1/reviews/${review_id}`;
  const person = await aPerson();
  expect((await decide(person, path, { action: 'merge', into: id })).status).toBe(422);
  expect(await read(path)).toMatchObject({ state: 'open', version: 1 });
  expect(await readJson(decide(person, path, { action: 'retire' }))).toMatchObject([
    200,
    { state: 'resolved' },
  ]);
  expect(await readJson(api.call(`/skills/${id}`))).toMatchObject([200, { state: 'retired' }]);
});

describe('a claim', () => {
  test('keeps others out until it is released', async () => {
    const { path } = await aReview();
    const [first, second] = [await aPerson(), await aPerson()];
    const askedAt = Date.now();
    const [, claimed] = await readJson<Review>(first(`${path}/claim`, { method: 'POST' }));
    const answeredAt = Date.now();
    expect(claimed).toMatchObject({ state: 'claimed', version: 2, assignee: expect.any(String) });
    const expiresAt = Date.parse(claimed.claim_expires_at as string);
    expect(expiresAt).toBeGreaterThanOrEqual(askedAt + 15 * 60_000);
    expect(expiresAt).toBeLessThanOrEqual(answeredAt + 15 * 60_000);
    const taken = [409, { code: 'state_conflict', review: { assignee: claimed.assignee } }];
    expect(await readJson(second(`${path}/claim`, { method: 'POST' }))).toMatchObject(taken);
    expect(await readJson(second(`${path}/release`, { method: 'POST' }))).toMatchObject(taken);
    expect(await readJson(decide(second, path, { action: 'retry' }, { version: 2 }))).toMatchObject(taken);
    expect((await first(`${path}/release`, { method: 'POST' })).status).toBe(200);
    expect((await decide(second, path, { action: 'retry' }, { version: 3 })).status).toBe(200);
  });

  test('that expired belongs to no person', async () => {
    const { path, review_id } = await aReview();
    const [first, second] = [await aPerson(), await aPerson()];
    await first(`${path}/claim`, { method: 'POST' });
    await api
      .db('review')
      .where({ review_id })
      .update({ claim_expires_at: new Date(Date.now() - 1_000) });
    expect(await read(path)).toMatchObject({ state: 'open', version: 2 });
    expect((await decide(second, path, { action: 'retry' }, { version: 2 })).status).toBe(200);
    expect((await decide(first, path, { action: 'retry' }, { version: 2 })).status).toBe(409);
  });
});

test('reviews are listed by run, state and due date, the newest first, in pages', async () => {
  const [older, newer] = [await aReview(), await aReview()];
  const list = async (query: string): Promise<{ ids: string[]; next: string | null }> => {
    const [, page] = await readJson<ReviewList>(api.call(`/v1/reviews?${query}`));
    return { ids: page.items.map(({ review_id }) => review_id), next: page.next_cursor };
  };
  const { run_id, review_id } = older;
  expect(await list(`run_id=${run_id}&state=open&overdue=false`)).toEqual({ ids: [review_id], next: null });
  expect(await list(`run_id=${run_id}&overdue=true`)).toEqual({ ids: [], next: null });
  expect(await list(`run_id=${run_id}&state=resolved`)).toEqual({ ids: [], next: null });
  const { ids, next } = await list('limit=1');
  expect(ids).toEqual([newer.review_id]);
  expect((await list(`limit=1&cursor=${next}`)).ids).toEqual([review_id]);
  expect((await api.call('/v1/reviews?colour=red')).status).toBe(422);
});

test('a list leaves out details of the decision, but includes the possible actions', async () => {
  const proposals = [{ input: { rate: 44_100 }, patch: [], source: 'repair' }];
  const small = {
    job_type: 'resample',
    error: 'rate is no number',
    optional: true,
    details: { text: 'a\u0000b' },
  };
  const large = {
    input: { rate: 'fast' },
    proposals,
    schema,
    history: [{ level: 0, label: 'static template', attempted_at: 1, error: 'rate is no number' }],
    advice: [{ from_level: 1, label: 'fast model', instructions: 'write hertz' }],
  };
  const full = await aReview({ payload: { ...small, ...large } });
  const plain = await aReview();
  const listed = async (run_id: string): Promise<Review | undefined> =>
    (await readJson<ReviewList>(api.call(`/v1/reviews?run_id=${run_id}`)))[1].items[0];
  const shown = await read(full.path);
  expect(shown.payload).toEqual({ ...small, ...large });
  const pipeline = expect.any(String);
  expect(await listed(full.run_id)).toEqual({ ...shown, pipeline, payload: small });
  const { history: _h, advice: _a, ...answerable } = large;
  expect(await listed(`${full.run_id}&payload=full`)).toEqual({
    ...shown,
    pipeline,
    payload: { ...small, ...answerable },
  });
  const long = await aReview({ payload: { ...small, ...large, input: { rate: 'x'.repeat(17_000) } } });
  const { input: _i, ...rest } = answerable;
  expect((await listed(`${long.run_id}&payload=full`))?.payload).toEqual({ ...small, ...rest });
  expect(shown.actions).toContain('approve');
  expect(await listed(plain.run_id)).toEqual({ ...(await read(plain.path)), pipeline, payload: {} });
});

test('a review of another project does not exist, and reading is not deciding', async () => {
  const { path } = await aReview();
  const { projectId } = await api.createProject('other');
  const stranger = await aPerson([projectId]);
  const answers = await Promise.all([
    stranger(path),
    stranger(`${path}/claim`, { method: 'POST' }),
    stranger(`${path}/release`, { method: 'POST' }),
    decide(stranger, path, { action: 'retry' }),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404]);
  const key = await api.createKey({ scopes: ['run:read'] });
  const reader: Person = (to, options = {}) =>
    api.call(to, { ...options, headers: { ...options.headers, authorization: `Bearer ${key}` } });
  expect((await reader(path)).status).toBe(200);
  expect((await decide(reader, path, { action: 'retry' })).status).toBe(403);
});
