/** What pages of the console read besides: pictures of runs, lists of decisions, sums in time, worth, checks. */

import type { CallsSummary } from '@capstan/core/contracts/capability';
import type { DecisionListed } from '@capstan/core/contracts/decision';
import type { CallsHealth, RunsHealth } from '@capstan/core/contracts/health';
import type { PipelineVersion } from '@capstan/core/contracts/pipeline-answers';
import type { InputVerdict, ReviewSummary } from '@capstan/core/contracts/review';
import type { Run, RunSummary } from '@capstan/core/contracts/run';
import type { RunGraph, RunsSummary, RunTimeline } from '@capstan/core/contracts/run-picture';
import type { SkillWorth } from '@capstan/core/contracts/skill';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Claim } from '../../src/db/attempt/attempt.ts';
import { insertReview } from '../../src/db/review/review.ts';
import { finishRun } from '../../src/db/run/run.ts';
import { newId } from '../../src/parts/ids.ts';
import { noMaintenance, readJson, startTestApi, type TestApi } from '../support/api.ts';
import { registerInstance } from '../support/direct-calls.ts';
import { aClaim, anEnd, anInstance, aRun, claimAttempt, settleAttempt } from '../support/factories.ts';
import { sendRaw } from '../support/raw-request.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
let foreign: Record<string, string>;
beforeAll(async () => {
  // No maintenance: it would delete old runs.
  api = await startTestApi(noMaintenance);
  foreign = { authorization: `Bearer ${(await api.createProject('other')).apiKey}` };
});
afterAll(() => api.close());

function get<Body>(path: string, headers: Record<string, string> = {}): Promise<[number, Body]> {
  return readJson<Body>(api.call(path, { headers }));
}

type Stored = Awaited<ReturnType<typeof aRun>>;

async function call(run: Stored, changes: Partial<Claim> & { readonly step_id?: string } = {}) {
  const { step_id = 'a' } = changes;
  const instance = await anInstance(api.db, { cost_type: 'per_call', rate_usd: 0.5, max_concurrency: 9 });
  const claim = aClaim(run, instance, {
    key: `${run.run_id}.${step_id}.0.0`,
    step: { run_id: run.run_id, step_id, item: 0, revision: 0 },
    reserved_nano: 500_000_000n,
    ...changes,
  });
  const candidate = { endpoint: instance.endpoint, tier: 1, cost_usd: 0.5, wait_ms: 40, score: 1 };
  const chosen = { ...claim.decision, candidates: [{ ...candidate, verdict: 'chosen' as const }] };
  await claimAttempt(api.db, { ...claim, decision: chosen });
  await settleAttempt(api.db, anEnd(claim, { settled_nano: 400_000_000n }));
  return { claim, instance };
}

function ownRun(changes: Parameters<typeof aRun>[1] = {}): Promise<Stored> {
  return aRun(api.db, { project_id: api.projectId, ...changes });
}

describe('a run', () => {
  test('shows its whole graph before anything has happened', async () => {
    const steps = [
      { id: 'a', capability: 'concat' },
      { id: 'b', capability: 'concat', for_each: { items: '{{ steps.a.output.list }}' } },
      { id: 'c', wait: '5s', depends_on: ['b'] },
    ];
    const run = await ownRun({ definition: { steps } as never });
    const [status, graph] = await get<RunGraph>(`/v1/runs/${run.run_id}/graph`);
    expect(status).toBe(200);
    expect(graph.definition).toEqual(run.definition);
    expect(graph.steps).toEqual([
      { id: 'a', capability: 'concat' },
      { id: 'b', capability: 'concat', for_each: { items: '{{ steps.a.output.list }}' } },
      { id: 'c', wait: '5s' },
    ]);
    expect(graph.edges).toEqual([
      { from: 'a', to: 'b' },
      { from: 'b', to: 'c' },
    ]);
    expect((await get(`/v1/runs/${run.run_id}/graph`, foreign))[0]).toBe(404);
  });

  test('shows its calls in time, with what was expected and what became of it', async () => {
    const run = await ownRun();
    const { claim, instance } = await call(run);
    await call(run, { step_id: 'b' });
    const [, timeline] = await get<RunTimeline>(`/v1/runs/${run.run_id}/timeline`);
    const rows = timeline.rows.map((row) =>
      Object.fromEntries(timeline.columns.map((column, index) => [column, row[index]])),
    );
    expect(rows).toHaveLength(2);
    expect(rows[0]).toEqual({
      step_id: 'a',
      item: 0,
      attempt_id: claim.attempt_id,
      decision_id: claim.attempt_id.replace('att_', 'dec_'),
      revision: 0,
      level: null,
      endpoint: instance.endpoint,
      state: 'settled',
      ambiguity: 'answered',
      ready_at: null,
      started_at: expect.any(String),
      finished_at: expect.any(String),
      expected_ms: 40,
      expected_usd: 0.5,
      reserved_usd: 0.5,
      cost_usd: 0.4,
      certainty: 'exact',
      error: null,
    });
    expect(rows[1]).toMatchObject({ step_id: 'b', ready_at: expect.any(String) });
    expect(timeline.next_cursor).toBe(null);
    expect((await get(`/v1/runs/${run.run_id}/timeline`, foreign))[0]).toBe(404);
  });

  test('shows with which code a call failed, although it was answered and charged', async () => {
    const run = await ownRun();
    const { claim } = await call(run);
    const error = { code: 'output_invalid', message: 'it lacks "clip"' };
    await api
      .db('attempt')
      .where({ attempt_id: claim.attempt_id })
      .update({ error: JSON.stringify(error) });
    const [, { columns, rows }] = await get<RunTimeline>(`/v1/runs/${run.run_id}/timeline`);
    const of = (column: string) => rows[0]?.[columns.indexOf(column as never)];
    expect([of('state'), of('ambiguity'), of('error')]).toEqual(['settled', 'answered', 'output_invalid']);
  });

  test('shows the calls of models that were asked for its steps', async () => {
    const run = await ownRun();
    const escalation_id = newId('escalation');
    await api.db('escalation').insert({
      escalation_id,
      project_id: api.projectId,
      job_type: 'concat',
      prompt: '',
      run_id: run.run_id,
      step_id: 'b',
      item: 0,
      ladder: '{}',
      escalation_level: 2,
      model_spec: '{}',
    });
    await call(run, {
      key: `${escalation_id}.1`,
      step: null,
      run_id: run.run_id,
      capability: 'model.capable',
    });
    const [, { columns, rows }] = await get<RunTimeline>(`/v1/runs/${run.run_id}/timeline`);
    const of = (column: (typeof columns)[number]) => rows[0]?.[columns.indexOf(column)];
    expect([of('step_id'), of('level'), of('revision')]).toEqual(['b', 2, 0]);
  });
});

test('the last runs of each pipeline show how they ended, with medians of those that succeeded', async () => {
  const { projectId, apiKey } = await api.createProject('health');
  const own = { authorization: `Bearer ${apiKey}` };
  const yaml = { ...own, 'content-type': 'application/yaml' };
  for (const pipeline of ['nightly', 'unused']) {
    const definition = `pipeline: ${pipeline}\nversion: "1"\nsteps: [{ id: a, capability: x }]`;
    await api.call('/v1/pipelines', { method: 'POST', headers: yaml, body: definition });
  }
  const started_at = '2026-01-01T00:00:00Z';
  const aged = async (state: string, seconds: number, more: object = {}): Promise<string> => {
    const { run_id } = await aRun(api.db, { project_id: projectId, definition: { pipeline: 'nightly' } });
    const finished_at = new Date(Date.parse(started_at) + seconds * 1_000);
    await api
      .db('run')
      .where({ run_id })
      .update({ state, started_at, finished_at, ...more });
    return run_id;
  };
  const ids = [
    await aged('succeeded', 2),
    await aged('failed', 90),
    await aged('succeeded', 4, { item_counts: '{"succeeded": 3, "failed": 1, "unknown": 1}' }),
  ];
  const open = await aRun(api.db, { project_id: projectId, definition: { pipeline: 'nightly' } });
  await aRun(api.db, { project_id: projectId, definition: { pipeline: 'unstored' } });
  const child = await aRun(api.db, { project_id: projectId, definition: { pipeline: 'nightly' } });
  await api.db('run').where({ run_id: child.run_id }).update({ parent_run_id: ids[0] });
  const [status, { items }] = await get<RunsHealth>('/v1/runs/health', own);
  expect([status, items.map(({ pipeline }) => pipeline)]).toEqual([200, ['nightly']]);
  expect(items[0]).toMatchObject({ ended: 3, succeeded: 2, p50_ms: 3_000, p50_usd: 0 });
  expect(items[0]?.last).toMatchObject([
    { run_id: open.run_id, state: 'queued' },
    { run_id: ids[2], state: 'succeeded', failed_items: 2 },
    { run_id: ids[1], state: 'failed' },
    { run_id: ids[0], state: 'succeeded' },
  ]);
  const [, few] = await get<RunsHealth>('/v1/runs/health?last=1', own);
  expect(few.items[0]).toMatchObject({ last: [{ run_id: open.run_id }], ended: 0, p50_ms: null });
  expect((await get('/v1/runs/health?last=51', own))[0]).toBe(422);
});

test('the last calls of each instance show how they ended, and those that were never sent do not count', async () => {
  const { projectId, apiKey } = await api.createProject('instances');
  const own = { authorization: `Bearer ${apiKey}` };
  const run = await aRun(api.db, { project_id: projectId });
  const ends = [
    { step_id: 'a', duration_ms: 10 },
    { step_id: 'b', duration_ms: 30, error: JSON.stringify({ code: 'step_failed', message: 'HTTP 500' }) },
    { step_id: 'c', state: 'released', duration_ms: null },
  ];
  const { instance } = await call(run, { step_id: 'first' });
  const { name, endpoint } = instance;
  await api.db('instance').where({ name, endpoint }).update({ owner_project: projectId });
  await api.db('attempt').where({ run_id: run.run_id }).update({ duration_ms: 20 });
  for (const { step_id, ...end } of ends) {
    const { claim } = await call(run, { step_id });
    await api
      .db('attempt')
      .where({ attempt_id: claim.attempt_id })
      .update({ ...end, endpoint, capability: name });
  }
  const [status, { items }] = await get<CallsHealth>('/v1/calls/health', own);
  expect(status).toBe(200);
  expect(items).toMatchObject([
    {
      name,
      endpoint,
      last: [{ succeeded: false, error: 'step_failed' }, { succeeded: true }, { succeeded: true }],
      ended: 3,
      succeeded: 2,
      p50_ms: 15,
      p50_usd: 0.4,
    },
  ]);
  const [, others] = await get<CallsHealth>('/v1/calls/health');
  expect(others.items.map((item) => item.endpoint)).not.toContain(endpoint);
});

test('calls are counted by capability, with how they went and the last error', async () => {
  const { projectId, apiKey } = await api.createProject('calls');
  const own = { authorization: `Bearer ${apiKey}` };
  const run = await aRun(api.db, { project_id: projectId });
  const ends = [
    { step_id: 'a', duration_ms: 10 },
    { step_id: 'b', duration_ms: 30 },
    { step_id: 'c', duration_ms: 900, error: JSON.stringify({ code: 'step_failed', message: 'HTTP 500' }) },
  ];
  for (const { step_id, ...end } of ends) {
    const { claim } = await call(run, { step_id });
    await api.db('attempt').where({ attempt_id: claim.attempt_id }).update(end);
  }
  const [status, { items }] = await get<CallsSummary>('/v1/calls/summary', own);
  expect(status).toBe(200);
  expect(items).toEqual([
    {
      name: expect.any(String),
      calls: 3,
      succeeded: 2,
      p50_ms: 20,
      p95_ms: 29,
      last_error: {
        at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
        code: 'step_failed',
        message: 'HTTP 500',
      },
    },
  ]);
  const [, before] = await get<CallsSummary>('/v1/calls/summary?until=2026-01-01T00:00:00Z', own);
  expect(before.items).toEqual([]);
});

describe('runs', () => {
  test('are counted by state in buckets of time, with what they cost', async () => {
    const { projectId, apiKey } = await api.createProject('sums');
    const own = { authorization: `Bearer ${apiKey}` };
    const runs = [
      await aRun(api.db, { project_id: projectId }),
      await aRun(api.db, { project_id: projectId }),
    ];
    await call(runs[0] as Stored);
    await finishRun(api.db, {
      run_id: runs[0]?.run_id ?? '',
      state: 'failed',
      output: null,
      error: null,
      step_ids: [],
    });
    const [status, { buckets }] = await get<RunsSummary>('/v1/runs/summary?buckets=4', own);
    expect([status, buckets.length]).toEqual([200, 4]);
    expect(buckets.slice(0, 3).every(({ by_state }) => Object.keys(by_state).length === 0)).toBe(true);
    expect(buckets[3]).toMatchObject({ by_state: { queued: 1, failed: 1 }, cost_usd: 0.4 });
    await api
      .db('run')
      .where({ run_id: runs[1]?.run_id })
      .update({ labels: { batch: '7' } });
    const [, labelled] = await get<RunsSummary>('/v1/runs/summary?label=batch%3D7&buckets=1', own);
    expect(labelled.buckets[0]?.by_state).toEqual({ queued: 1 });
    const [, none] = await get<RunsSummary>('/v1/runs/summary?pipeline=none&buckets=1', own);
    expect(none.buckets[0]?.by_state).toEqual({});
    const error = { code: 'step_failed', message: 'CUDA out of memory' };
    await api
      .db('run')
      .where({ run_id: runs[1]?.run_id })
      .update({ error: JSON.stringify(error) });
    const counts = async (filter: string): Promise<object | undefined> =>
      (await get<RunsSummary>(`/v1/runs/summary?buckets=1&${filter}`, own))[1].buckets[0]?.by_state;
    expect(await counts('q=cuda')).toEqual({ queued: 1 });
    expect(await counts('q=batch%3D7')).toEqual({ queued: 1 });
    expect(await counts(`q=${runs[0]?.run_id}`)).toEqual({ failed: 1 });
    expect(await counts('q=100%25')).toEqual({});
    expect(await counts('awaiting=budget')).toEqual({});
    await api.db('run').where({ run_id: runs[1]?.run_id }).update({ parent_run_id: runs[0]?.run_id });
    expect(await counts('parent=none')).toEqual({ failed: 1 });
    const wrong = '/v1/runs/summary?since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z';
    expect((await get(wrong, own))[0]).toBe(422);
  });

  test('that are open are listed from the oldest one on, page by page', async () => {
    const { projectId, apiKey } = await api.createProject('oldest');
    const own = { authorization: `Bearer ${apiKey}` };
    const ids: string[] = [];
    for (let made = 0; made < 3; made++) ids.push((await aRun(api.db, { project_id: projectId })).run_id);
    const first = '/v1/runs?state=queued&order=oldest&limit=2';
    const [, page] = await get<{ items: RunSummary[]; next_cursor: string }>(first, own);
    expect(page.items.map(({ run_id }) => run_id)).toEqual(ids.slice(0, 2));
    const [, next] = await get<{ items: RunSummary[] }>(`${first}&cursor=${page.next_cursor}`, own);
    expect(next.items.map(({ run_id }) => run_id)).toEqual(ids.slice(2));
  });

  test('are found by what they wait for', async () => {
    const waiting = await ownRun();
    await ownRun();
    const row = { run_id: waiting.run_id, step_id: 'a', item: 0, state: 'waiting', awaiting: 'budget' };
    await api.db('step').insert(row);
    const list = async (awaiting: string) =>
      (await get<{ items: RunSummary[] }>(`/v1/runs?awaiting=${awaiting}`))[1].items.map((run) => run.run_id);
    expect(await list('budget')).toEqual([waiting.run_id]);
    expect(await list('review')).toEqual([]);
    await api.db('step').where({ run_id: waiting.run_id }).update({ state: 'in_review', awaiting: null });
    expect(await list('review')).toEqual([waiting.run_id]);
    const asked = {
      review_id: 'rev_money',
      project_id: api.projectId,
      kind: 'budget',
      reason: 'the ladder has no money',
      due_at: new Date(Date.now() + 3_600_000), // the server expires overdue ones
      payload: '{}',
    };
    await api.db('review').insert({ ...asked, run_id: waiting.run_id, step_id: 'a', item: 0 });
    expect([await list('budget'), await list('review')]).toEqual([[waiting.run_id], []]);
    await api.db('review').where({ review_id: 'rev_money' }).update({ kind: 'escalation' });
    expect([await list('budget'), await list('review')]).toEqual([[], [waiting.run_id]]);
    await api.db('review').where({ review_id: 'rev_money' }).update({ kind: 'budget', step_id: 'b' });
    expect(await list('review')).toEqual([waiting.run_id]);
    await api
      .db('step')
      .where({ run_id: waiting.run_id })
      .update({ state: 'retrying', error: '{"code": "no_instance"}' });
    expect(await list('capability')).toContain(waiting.run_id);
    const [, run] = await get<Run>(`/v1/runs/${waiting.run_id}`);
    expect(run.awaiting).toEqual(['capability']);
  });

  test('show in the list why they do not move, and how far they are', async () => {
    const [follower, leader] = [await ownRun(), await ownRun()];
    const step = (run_id: string, step_id: string, rest: object) =>
      api.db('step').insert({ run_id, step_id, item: 0, ...rest });
    await step(follower.run_id, 'a', { state: 'succeeded' });
    await step(leader.run_id, 'a', { state: 'waiting', awaiting: 'capability' });
    await step(leader.run_id, 'b', { state: 'in_review' });
    const ladder = (escalation_id: string, run: Stored, rest: object) =>
      api.db('escalation').insert({
        escalation_id,
        project_id: run.project_id,
        job_type: 'step',
        prompt: '',
        run_id: run.run_id,
        step_id: 'a',
        item: 0,
        ladder: '{}',
        escalation_level: 0,
        model_spec: '{}',
        ...rest,
      });
    await ladder('esc_lead', leader, { state: 'in_review', review_id: 'rev_1' });
    await ladder('esc_follow', follower, { leader_id: 'esc_lead' });
    const rowOf = async ({ run_id }: Stored) =>
      (await get<{ items: RunSummary[] }>('/v1/runs'))[1].items.find((run) => run.run_id === run_id);
    const follows = { escalation_id: 'esc_lead', run_id: leader.run_id, step_id: 'a', review_id: 'rev_1' };
    expect(await rowOf(follower)).toMatchObject({ step_counts: { succeeded: 1 }, follows });
    expect(await rowOf(leader)).toMatchObject({
      awaiting: ['capability', 'review'],
      step_counts: { waiting: 1, in_review: 1 },
    });
    expect((await get<Run>(`/v1/runs/${follower.run_id}`))[1].follows).toEqual(follows);
    await api
      .db('escalation')
      .where({ escalation_id: 'esc_lead' })
      .update({ state: 'succeeded', finished_at: new Date() });
    expect(await rowOf(follower)).not.toHaveProperty('follows');
  });

  test('are found by a part of their pipeline or label, and by the begin of their id', async () => {
    const run = await ownRun({ definition: { pipeline: 'film_100' }, labels: { customer: 'Ada & Co' } });
    await ownRun({ definition: { pipeline: 'filmX100' } });
    const list = async (q: string) =>
      (await get<{ items: RunSummary[] }>(`/v1/runs?q=${encodeURIComponent(q)}`))[1].items.map(
        ({ run_id }) => run_id,
      );
    expect(await list('lm_1')).toEqual([run.run_id]);
    expect(await list('ada &')).toEqual([run.run_id]);
    expect(await list('customer=Ada & Co')).toEqual([run.run_id]);
    expect(await list('customer=Bob')).toEqual([]);
    expect(await list(run.run_id.slice(0, -2))).toEqual([run.run_id]);
    const error = { code: 'input_rejected', message: 'HTTP 422: no such file 100%' };
    await api
      .db('run')
      .where({ run_id: run.run_id })
      .update({ error: JSON.stringify(error) });
    expect(await list('rejected: http 422')).toEqual([run.run_id]);
    expect(await list('file 100%')).toEqual([run.run_id]);
    expect(await list('message')).toEqual([]);
    await api.db('run').where({ run_id: run.run_id }).update({ error: null });
    expect(await list('%')).toEqual([]);
    expect(await list('nothing')).toEqual([]);
  });
});

test('a page of a search looks at 10,000 runs, and the next one continues behind them', async () => {
  const other = await api.createProject('searched');
  const old = await aRun(api.db, { project_id: other.projectId, labels: { wanted: 'yes' } });
  await api.db.raw(
    `insert into run (run_id, project_id, job_id, pipeline, version, digest, priority, state)
     select 'run_ffffffff-ffff-7000-8000-' || lpad(n::text, 12, '0'), project_id, job_id, pipeline, version, digest,
       priority, 'queued' from run, generate_series(1, 10000) n where run_id = ?`,
    [old.run_id],
  );
  const search = (query: string) =>
    readJson<{ items: RunSummary[]; next_cursor: string | null }>(
      api.call(`/v1/runs?${query}`, { headers: { authorization: `Bearer ${other.apiKey}` } }),
    );
  const [, first] = await search('q=wanted=yes');
  expect([first.items, first.next_cursor]).toEqual([[], expect.any(String)]);
  const [, next] = await search(`q=wanted=yes&cursor=${first.next_cursor}`);
  expect([next.items.map(({ run_id }) => run_id), next.next_cursor]).toEqual([[old.run_id], null]);
});

test('decisions are listed with what they were made from, those of the project alone', async () => {
  const run = await ownRun();
  // What the day of all projects leaves is not theirs to see.
  const request = { capability: 'rare', headroom_usd: 0.123, hides_headroom: true };
  const { claim, instance } = await call(run, { capability: 'rare', inputs: { request, seed: 7 } });
  const columns = expect.arrayContaining(['endpoint', 'rate_usd']);
  const residency_columns = expect.arrayContaining(['key', 'isResident']);
  const [status, page] = await get<{ items: DecisionListed[] }>('/v1/decisions?capability=rare');
  expect(status).toBe(200);
  expect(page.items).toEqual([
    {
      decision_id: claim.attempt_id.replace('att_', 'dec_'),
      at: expect.any(String),
      run_id: run.run_id,
      step_id: 'a',
      chosen: instance.endpoint,
      outcome: 'succeeded',
      error: null,
      settled_usd: 0.4,
      duration_ms: 12.5,
      inputs: { request: { ...request, headroom_usd: null }, seed: 7, columns, residency_columns },
    },
  ]);
  const count = async (query: string, headers = {}) =>
    (await get<{ items: unknown[] }>(`/v1/decisions?${query}`, headers))[1].items.length;
  expect(await count('capability=rare', foreign)).toBe(0);
  expect(await count(`run_id=${run.run_id}`)).toBe(1);
  expect(await count(`endpoint=${encodeURIComponent(instance.endpoint)}`)).toBe(1);
  expect(await count('capability=rare&until=2026-01-01T00:00:00Z')).toBe(0);
  await call(run, { capability: 'rare', step_id: 'b' });
  const [, first] = await get<{ items: DecisionListed[]; next_cursor: string }>(
    '/v1/decisions?capability=rare&limit=1',
  );
  const [, second] = await get<{ items: DecisionListed[]; next_cursor: null }>(
    `/v1/decisions?capability=rare&limit=1&cursor=${first.next_cursor}`,
  );
  expect([first.items[0]?.step_id, second.items[0]?.step_id, second.next_cursor]).toEqual(['b', 'a', null]);
});

test('a skill shows what it saved and what it was learnt from', async () => {
  const run = await ownRun();
  const escalation_id = newId('escalation');
  const skill_id = newId('skill');
  await api.db('escalation').insert({
    escalation_id,
    project_id: api.projectId,
    job_type: 'concat',
    prompt: '',
    context: JSON.stringify({ rate: 'x' }),
    run_id: run.run_id,
    step_id: 'a',
    item: 0,
    ladder: '{}',
    escalation_level: 2,
    escalation_history: JSON.stringify([
      { level: 0, label: 'x', attempted_at: 1, error: 'rate must be number' },
    ]),
    model_spec: '{}',
    state: 'succeeded',
    review_id: 'rev_1',
    created_at: new Date(1_000),
    finished_at: new Date(3_000),
  });
  const revision = { run_id: run.run_id, step_id: 'a', item: 0, source: 'x', escalation_id, transition: 1 };
  await api.db('step_revision').insert({ ...revision, revision: 1, choice: 0, input: '{"rate":1}' });
  await call(run, { key: `${escalation_id}.1`, step: null, run_id: run.run_id, capability: 'model.capable' });
  const at = new Date();
  await api.db('skill').insert({
    skill_id,
    project_id: api.projectId,
    job_type: 'concat',
    trust: 'trusted',
    source: 'x',
    content_sha256: Buffer.alloc(32),
    base_success: 1,
    base_failure: 0,
    success_count: 3,
    failure_count: 0,
    escalation_id,
    last_used_at: at,
    created_at: at,
  });
  const texts = { repo_signals: [], error_patterns: [], instructions: 'x', author: 'x' };
  await api.db('skill_version').insert({ skill_id, version: 1, ...texts });
  for (const outcome of ['success', 'success', 'failure'])
    await api.db('skill_use').insert({ skill_id, version: 1, level: 0, outcome });
  const [status, worth] = await get<SkillWorth>(`/skills/${skill_id}/worth`);
  expect([status, worth]).toEqual([
    200,
    {
      uses: 2,
      saved_usd: 0.8,
      saved_ms: 4_000,
      reviews_avoided: 2,
      learnt: {
        escalation_id,
        run_id: run.run_id,
        step_id: 'a',
        error: 'rate must be number',
        input: { rate: 'x' },
        corrected: { rate: 1 },
        cost_usd: 0.4,
        duration_ms: 2_000,
      },
    },
  ]);
  expect((await get(`/skills/${skill_id}/worth`, foreign))[0]).toBe(404);
});

test('an input is checked without a call, and a near one is proposed', async () => {
  const input = { type: 'object', properties: { rate: { type: 'number' } }, required: ['rate'] };
  const instance = await registerInstance(api, { name: 'sampler', input });
  await waitFor('the spec to be read', async () => {
    const row = await api.db('instance').where({ name: 'sampler' }).first('spec_digest');
    return row?.spec_digest;
  });
  const check = (value: unknown) =>
    readJson<InputVerdict>(api.call('/v1/capabilities/sampler/check', { body: { input: value } }));
  expect(
    await waitFor('a refusal', async () => {
      const [, answer] = await check({ rate: '44' });
      return answer.valid ? undefined : answer;
    }),
  ).toMatchObject({
    errors: [{ pointer: '/rate', message: expect.stringContaining('number') }],
    proposals: [{ input: { rate: 44 }, source: 'repair' }],
  });
  expect(await check({ rate: 1 })).toEqual([200, { valid: true, errors: [], proposals: [] }]);
  expect((await check('text'))[1]).toMatchObject({ valid: false });
  expect((await readJson(api.call('/v1/capabilities/nobody/check', { body: { input: {} } })))[0]).toBe(404);
  expect(instance.execs).toEqual([]);
  await instance.stop();
});

test('a pipeline keeps the text that it was sent as', async () => {
  await anInstance(api.db, { name: 'x' });
  const text = '# why\npipeline: told\nversion: "1"\nsteps:\n  - {id: a, capability: x} # this\n';
  const headers = { 'content-type': 'application/yaml' };
  expect((await api.call('/v1/pipelines', { body: text, headers })).status).toBe(201);
  const [, version] = await get<PipelineVersion>('/v1/pipelines/told/versions/1');
  expect(version.source).toEqual({ text, content_type: 'application/yaml' });
  expect((await api.call('/v1/pipelines', { body: version.definition })).status).toBe(200);
  const [, latest] = await get<PipelineVersion>('/v1/pipelines/told');
  expect(latest.source?.text).toBe(text);
});

test('reviews come in the order in which they are due, page by page', async () => {
  const { projectId, apiKey } = await api.createProject('due');
  const headers = { authorization: `Bearer ${apiKey}` };
  for (const [reason, due_in_ms] of [
    ['late', 90_000],
    ['soon', 10_000],
    ['then', 50_000],
  ] as const) {
    const review = { review_id: newId('review'), project_id: projectId, kind: 'ops', reason, payload: {} };
    await insertReview(api.db, { ...review, due_in_ms } as Parameters<typeof insertReview>[1]);
  }
  type Page = { items: ReviewSummary[]; next_cursor: string | null };
  const [, first] = await get<Page>('/v1/reviews?order=due_at&limit=2', headers);
  const next = `/v1/reviews?order=due_at&limit=2&cursor=${first.next_cursor}`;
  const [, second] = await get<Page>(next, headers);
  const reasons = [...first.items, ...second.items].map(({ reason }) => reason);
  expect([reasons, second.next_cursor]).toEqual([['soon', 'then', 'late'], null]);
});

test('a file can be had as a download', async () => {
  const [, { job_id }] = await readJson<{ job_id: string }>(api.call('/v1/jobs', { body: { job: {} } }));
  const path = `/v1/media/${job_id}/clips/a.mp4`;
  await api.call(path, { method: 'PUT', body: 'film', headers: { 'content-type': 'video/mp4' } });
  const shown = await api.call(path);
  const stored = await api.call(`${path}?download=true`);
  expect(shown.headers.get('content-disposition')).toBe(null);
  expect(stored.headers.get('content-disposition')).toBe('attachment; filename="a.mp4"');
});

describe('a large answer', () => {
  const path = '/v1/openapi.json';

  test.each(['gzip', 'br'])('is sent as %s to a client that accepts it', async (encoding) => {
    const answer = await api.call(path, { headers: { 'accept-encoding': encoding } });
    expect([answer.headers.get('content-encoding'), answer.headers.get('vary')]).toEqual([
      encoding,
      'Accept-Encoding',
    ]);
    expect(await answer.json()).toMatchObject({ openapi: '3.1.0' });
  });

  test('is sent as it is to others, and small ones always are', async () => {
    const plain = await sendRaw(api.url, { path, headers: ['Host', 'capstan.test'] });
    expect(plain.headers['content-encoding']).toBe(undefined);
    expect(JSON.parse(plain.body)).toMatchObject({ openapi: '3.1.0' });
    const small = await api.call('/livez', { headers: { 'accept-encoding': 'gzip' } });
    expect(small.headers.get('content-encoding')).toBe(null);
  });
});
