import type { ScopedBudget } from '@capstan/core/contracts/money';
import type { Review } from '@capstan/core/contracts/review';
import type { Run } from '@capstan/core/contracts/run';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { noMaintenance, readJson, startTestApi, type TestApi } from '../support/api.ts';
import { anInstance, aRun } from '../support/factories.ts';
import { isWoken, stateOf, waitForBudget } from '../support/waiting.ts';

let api: TestApi;
let runs: Run[];
beforeAll(async () => {
  api = await startTestApi(noMaintenance);
  await anInstance(api.db, { name: 'x' });
});
afterAll(() => api.close());

const steps = [
  { id: 'a', capability: 'x' },
  { id: 'b', capability: 'x', optional: true },
];
function setDaily(scope: string, daily_limit_usd: number) {
  return readJson(api.call('/v1/budgets', { method: 'PUT', body: { scope, daily_limit_usd } }));
}

beforeEach(async () => {
  await api
    .db('review')
    .whereIn('state', ['open', 'claimed'])
    .update({ state: 'cancelled', decided_at: new Date() });
  await api.db('step').delete();
  await setDaily('project', 1);
  runs = [];
  for (let n = 0; n < 2; n++) {
    const body = { definition: { pipeline: 'paid', version: '1', steps }, job: {}, budget_ceiling_usd: 1 };
    runs.push((await readJson<Run>(api.call('/v1/runs', { body })))[1]);
  }
});

function at(index: number): Run {
  return runs[index] as Run;
}
function placeOf(run: Run) {
  return { run_id: run.run_id, project_id: api.projectId };
}
function project() {
  return `project:${api.projectId}`;
}

/** Both runs wait for the project's day with step a, the second with b too. */
async function waitAll(): Promise<string> {
  const waiting = [
    [at(0), 'a'],
    [at(1), 'a'],
    [at(1), 'b'],
  ] as const;
  let id = '';
  for (const [run, step_id] of waiting) {
    id = await waitForBudget(api.db, placeOf(run), { step_id, scope: project() });
  }
  return id;
}
async function decide(id: string, decision: object, key = api.apiKey) {
  const [, { version }] = await readJson<Review>(api.call(`/v1/reviews/${id}`));
  const headers = { 'if-match': `"${version}"`, authorization: `Bearer ${key}` };
  return readJson<Review>(api.call(`/v1/reviews/${id}/decision`, { body: decision, headers }));
}
/** Steps whose run is to be woken; maintenance does not run here. */
async function wakesOf(): Promise<number> {
  return Number((await api.db('step').whereNotNull('wake_requested_at').count('* as n').first())?.n);
}

describe('the budget of a label without room', () => {
  const path = '/v1/budgets/scoped/label:team=ads';
  const limitOf = async () => {
    const [, { items }] = await readJson<{ items: ScopedBudget[] }>(api.call('/v1/budgets/scoped'));
    return items.map(({ scope, period, limit_usd, soft }) => ({ scope, period, limit_usd, soft }));
  };

  test.each([
    ['month', 2.5, [{ scope: 'label:team=ads', period: 'month', limit_usd: 2.5, soft: 0.6 }]],
    ['month', 0, []],
    ['total', 3, [{ scope: 'label:team=ads', period: 'total', limit_usd: 3, soft: 0.6 }]],
    ['total', 0, []],
  ])(
    'by %s is raised to %s by a decision, or removed, and the waiting calls continue',
    async (period, usd, limits) => {
      await api.db('scoped_budget').delete();
      const body = { limit_usd: 1, period, soft: 0.6 };
      expect((await readJson(api.call(path, { method: 'PUT', body })))[0]).toBe(200);
      const scope = `budget:${api.projectId}:${period}:label:team=ads`;
      const id = await waitForBudget(api.db, placeOf(at(0)), { step_id: 'a', scope });
      expect((await decide(id, { action: 'raise', budget_ceiling_usd: 0.5 }))[0]).toBe(422);
      const [status, review] = await decide(id, { action: 'raise', budget_ceiling_usd: usd });
      expect([status, review.state]).toEqual([200, 'resolved']);
      expect(await limitOf()).toEqual(limits);
      expect(await isWoken(api.db, at(0).run_id, 'a')).toBe(true);
    },
  );
});

describe('a budget without room', () => {
  test('is one question, that many steps wait for and that offers what can be done', async () => {
    const id = await waitAll();
    const [, { items }] = await readJson<{ items: Review[] }>(api.call('/v1/reviews?kind=budget&state=open'));
    expect(items.map(({ review_id }) => review_id)).toEqual([id]);
    expect(items[0]?.actions).toEqual(['raise', 'skip', 'cancel']);
    const [, run] = await readJson<Run>(api.call(`/v1/runs/${at(1).run_id}`));
    expect(run.awaiting).toEqual(['budget']);
    expect(run.steps.map(({ review_id }) => review_id)).toEqual([id, id]);
  });

  test('continues when the limit is raised by the budget itself, which answers the question', async () => {
    const id = await waitAll();
    await setDaily('project', 0.5); // no raise
    expect([await wakesOf(), (await readJson<Review>(api.call(`/v1/reviews/${id}`)))[1].state]).toEqual([
      0,
      'open',
    ]);
    await setDaily('project', 4);
    expect(await wakesOf()).toBe(3);
    expect((await readJson<Review>(api.call(`/v1/reviews/${id}`)))[1]).toMatchObject({
      state: 'resolved',
      decision: { action: 'raise', budget_ceiling_usd: 4 },
    });
  });

  test('is raised by a decision, to more than it was', async () => {
    const id = await waitAll();
    expect(await decide(id, { action: 'raise', budget_ceiling_usd: 1 })).toEqual([
      422,
      expect.objectContaining({
        detail: expect.stringMatching(
          /^1 USD does not raise the limit of 1 USD; the call that waits needs 1.5 USD at least$/,
        ),
        errors: [expect.objectContaining({ pointer: '/budget_ceiling_usd' })],
      }),
    ]);
    expect((await decide(id, { action: 'raise', budget_ceiling_usd: 7 }))[0]).toBe(200);
    expect(await wakesOf()).toBe(3);
    const [, { items }] = await readJson<{ items: object[] }>(api.call('/v1/budgets'));
    expect(items[0]).toMatchObject({ scope: 'project', daily_limit_usd: 7 });
  });

  test('is not raised by a key that may decide but not set budgets, and then is still open', async () => {
    const id = await waitAll();
    const key = await api.createKey({ scopes: ['review:decide', 'run:read'] });
    expect((await decide(id, { action: 'raise', budget_ceiling_usd: 7 }, key))[0]).toBe(403);
    expect((await readJson<Review>(api.call(`/v1/reviews/${id}`)))[1]).toMatchObject({
      state: 'open',
      version: 1,
    });
  });

  test('lets what is optional be skipped, and nothing else: that is woken, to ask again', async () => {
    const id = await waitAll();
    expect((await decide(id, { action: 'skip' }))[0]).toBe(200);
    expect(await Promise.all([0, 1].map((n) => stateOf(api.db, at(n).run_id, 'a')))).toEqual([
      'waiting',
      'waiting',
    ]);
    expect(await stateOf(api.db, at(1).run_id, 'b')).toBe('skipped');
    const line = await api
      .db('event')
      .where({ run_id: at(1).run_id, type: 'step.skipped' })
      .first('data');
    expect(line?.data).toMatchObject({ reason: 'review', review_id: id });
    expect(await wakesOf()).toBe(3);
  });

  test('is refused a skip when no step that waits is optional', async () => {
    const id = await waitForBudget(api.db, placeOf(at(0)), { step_id: 'a', scope: project() });
    expect(await decide(id, { action: 'skip' })).toEqual([
      422,
      expect.objectContaining({ detail: expect.stringContaining('those that wait: a') }),
    ]);
    expect((await readJson<Review>(api.call(`/v1/reviews/${id}`)))[1].state).toBe('open');
  });

  test('cancels the runs that wait for it, and those alone', async () => {
    const id = await waitForBudget(api.db, placeOf(at(0)), { step_id: 'a', scope: project() });
    expect((await decide(id, { action: 'cancel', note: 'too dear' }))[0]).toBe(200);
    const states = await api
      .db('run')
      .whereIn('run_id', [at(0).run_id, at(1).run_id])
      .orderBy('run_id');
    expect(states.map(({ state, cancel_reason }) => [state, cancel_reason])).toEqual([
      ['cancelling', 'too dear'],
      ['queued', null],
    ]);
  });

  test('of a run that a run below it waits for is raised for that one, or cancels the whole', async () => {
    const { run_id } = at(0);
    const below = { parent_run_id: run_id, parent_step_id: 'a', parent_item: 0 };
    const sub = await aRun(api.db, { project_id: api.projectId, ...below });
    const ask = async () => {
      const id = await waitForBudget(api.db, sub, { step_id: 'a', scope: `run:${run_id}` });
      await api.db('review').where({ review_id: id }).update({ run_id });
      return id;
    };
    expect((await decide(await ask(), { action: 'raise', budget_ceiling_usd: 3 }))[0]).toBe(200);
    expect(await isWoken(api.db, sub.run_id, 'a')).toBe(true);
    await api.db('step').where({ run_id: sub.run_id }).update({ wake_requested_at: null });
    expect((await decide(await ask(), { action: 'cancel' }))[0]).toBe(200);
    expect(await api.db('run').where({ run_id }).first('state')).toEqual({ state: 'cancelling' });
  });

  test('of a run is raised by a decision', async () => {
    const scope = `run:${at(0).run_id}`;
    const id = await waitForBudget(api.db, placeOf(at(0)), { step_id: 'a', scope });
    expect((await decide(id, { action: 'raise', budget_ceiling_usd: 3 }))[0]).toBe(200);
    const [, run] = await readJson<Run>(api.call(`/v1/runs/${at(0).run_id}`));
    expect(run.budget_ceiling_usd).toBe(3);
    expect(await wakesOf()).toBe(1);
  });

  test('of all projects is raised by an operator alone, for all of them', async () => {
    const id = await waitForBudget(api.db, placeOf(at(0)), { step_id: 'a', scope: 'global' });
    const other = await api.createProject('other');
    const far = { run_id: at(1).run_id, project_id: other.projectId };
    const farId = await waitForBudget(api.db, far, { step_id: 'a', scope: 'global' });
    const key = await api.createKey({ scopes: ['admin'] });
    const raise = { action: 'raise', budget_ceiling_usd: 9 };
    expect((await decide(id, raise, key))[0]).toBe(403);
    expect((await decide(id, raise))[0]).toBe(200);
    expect(await wakesOf()).toBe(2);
    expect(await api.db('review').where({ review_id: farId }).first('state')).toEqual({ state: 'resolved' });
    await setDaily('global', 0);
  });
});
