import type { Budget, CostSummary, LedgerEntry } from '@capstan/core/contracts/money';
import type { Problem } from '@capstan/core/contracts/problem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loseExpiredAttempts } from '../../src/db/attempt/attempt.ts';
import { noMaintenance, readJson, startTestApi, type TestApi } from '../support/api.ts';
import { passMidnight } from '../support/budgets.ts';
import {
  aClaim,
  anEnd,
  anInstance,
  aProject,
  aRun,
  claimAttempt,
  settleAttempt,
} from '../support/factories.ts';
import { isLong } from '../support/long.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
beforeAll(async () => {
  // No maintenance: it would correct budgets that are written by hand.
  api = await startTestApi(noMaintenance);
});
afterAll(() => api.close());

const usd = 1_000_000_000;

/** A project, a key for it, and a way to spend in it. */
async function aSpender(timezone = 'UTC') {
  const { projectId } = await api.createProject('money');
  const apiKey = await api.createKey({ scopes: ['admin', 'operator'], projects: [projectId] });
  await api.db('project').where({ project_id: projectId }).update({ timezone });
  const run = await aRun(api.db, { project_id: projectId });
  const paid = await anInstance(api.db, { cost_type: 'per_call', rate_usd: 1, max_concurrency: 10_000 });
  let steps = 0;
  const claim = async (capability: string, reservedUsd: number, over: Parameters<typeof aClaim>[2] = {}) => {
    const reserved_nano = BigInt(Math.round(reservedUsd * usd));
    const made = aClaim(run, paid, { step_id: `s${steps++}`, capability, reserved_nano, ...over });
    expect(await claimAttempt(api.db, made)).toMatchObject({ outcome: 'claimed' });
    return made;
  };
  const spend = async (capability: string, spentUsd: number) => {
    const made = await claim(capability, spentUsd);
    await settleAttempt(api.db, anEnd(made, { settled_nano: made.reserved_nano }));
    return made;
  };
  const call = (path: string, options: Parameters<TestApi['call']>[1] = {}) =>
    api.call(path, { ...options, headers: { authorization: `Bearer ${apiKey}`, ...options.headers } });
  return { projectId, run, claim, spend, call };
}

async function localDay(timezone: string, expression = 'today'): Promise<string> {
  const { rows } = await api.db.raw(
    `select (${expression})::date::text as day from (select (now() at time zone ?)::date::timestamp as today) t`,
    [timezone],
  );
  return rows[0].day;
}

describe('GET /v1/costs', () => {
  test("answers the specification's request and fields", async () => {
    const { projectId, spend } = await aSpender();
    await spend('concat', 0.1);
    await spend('concat', 0.2);
    const key = await api.createKey({ scopes: ['cost:read'], projects: [projectId] });
    const headers = { authorization: '', 'x-api-key': key, 'x-project-id': projectId };
    expect(await readJson(api.call('/v1/costs?period=day', { headers }))).toEqual([
      200,
      expect.objectContaining({ today_spend_usd: 0.3, daily_limit_usd: 0 }),
    ]);
    const foreign = { ...headers, 'x-project-id': api.projectId };
    expect((await api.call('/v1/costs?period=day', { headers: foreign })).status).toBe(403);
  });

  test('of a key of several projects needs to know which one is meant', async () => {
    const { projectId } = await api.createProject('another');
    const costsOf = async (projects: string[], headers: Record<string, string> = {}) => {
      const key = await api.createKey({ scopes: ['cost:read'], projects });
      const asked = { headers: { authorization: `Bearer ${key}`, ...headers } };
      const answer = await api.call('/v1/costs', asked);
      const { errors } = (await answer.json()) as Problem;
      return [answer.status, errors?.[0]?.pointer];
    };
    const both = [api.projectId, projectId];
    expect(await costsOf(both)).toEqual([422, '/headers/x-project-id']);
    expect(await costsOf(both, { 'x-project-id': projectId })).toEqual([200, undefined]);
    expect(await costsOf([projectId])).toEqual([200, undefined]);
  });

  test('reports today, the reserved amount, and each capability of the period, the most expensive first', async () => {
    const { spend, claim, call } = await aSpender('Pacific/Kiritimati');
    await spend('old', 5);
    await claim('old', 9);
    await passMidnight(api.db);
    await spend('model.fast', 0.1);
    await spend('model.fast', 0.2);
    await spend('concat', 0.7);
    await spend('concat.', 0.000000001);
    await claim('concat', 4);
    const today = await localDay('Pacific/Kiritimati');
    const facts = {
      today_spend_usd: 1.000000001,
      today_saved_usd: 0,
      daily_limit_usd: 0,
      reserved_usd: 4,
      to: today,
      timezone: 'Pacific/Kiritimati',
    };
    const byCapability = [
      { capability: 'concat', spend_usd: 0.7 },
      { capability: 'model.fast', spend_usd: 0.3 },
      { capability: 'concat.', spend_usd: 0.000000001 },
    ];
    const day = {
      ...facts,
      period: 'day',
      from: today,
      spend_usd: 1.000000001,
      forecast_usd: expect.toBeOneOf([null, expect.any(Number)]),
      by_capability: byCapability,
    };
    expect(await readJson(call('/v1/costs'))).toEqual([200, day]);
    expect(await readJson(call('/v1/costs?period=day'))).toEqual([200, day]);
    const all = { ...facts, period: 'all', from: null, spend_usd: 6.000000001, forecast_usd: null };
    expect(await readJson(call('/v1/costs?period=all'))).toEqual([
      200,
      { ...all, by_capability: [{ capability: 'old', spend_usd: 5 }, ...byCapability] },
    ]);
  });

  test.each([
    ['week', `date_trunc('week', today)`],
    ['month', `date_trunc('month', today)`],
  ])('counts the calendar %s, not the day before it', async (period, first) => {
    const { spend, call, projectId } = await aSpender();
    await spend('concat', 1);
    const [from, today] = [await localDay('UTC', first), await localDay('UTC')];
    const copy = (day: string) =>
      api.db.raw(
        `insert into budget (scope, window_start, spent_nano) select scope, ?::date, spent_nano from budget
         where scope like ? and window_start = ? on conflict do nothing`,
        [day, `%${projectId}%`, today],
      );
    await copy(from);
    await copy(await localDay('UTC', `${first} - interval '1 day'`));
    const [, costs] = await readJson<CostSummary>(call(`/v1/costs?period=${period}`));
    const spend_usd = from === today ? 1 : 2;
    expect(costs).toMatchObject({ period, from, to: today, spend_usd, today_spend_usd: 1 });
    expect(costs.by_capability).toEqual([{ capability: 'concat', spend_usd }]);
  });

  test('refuses another period, and a key without cost:read', async () => {
    expect((await api.call('/v1/costs?period=year')).status).toBe(422);
    const key = await api.createKey({ scopes: ['run:read'] });
    for (const path of ['/v1/costs', '/v1/ledger', '/v1/budgets']) {
      expect((await api.call(path, { headers: { authorization: `Bearer ${key}` } })).status).toBe(403);
    }
  });
});

interface Page {
  readonly items: LedgerEntry[];
  readonly next_cursor: string | null;
}

describe('GET /v1/ledger', () => {
  test('pages through everything, newest first, whatever is added meanwhile', async () => {
    const { spend, call, run } = await aSpender();
    for (const capability of ['a', 'b']) await spend(capability, 0.5);
    await passMidnight(api.db);
    await api.db.raw('alter table ledger_entry disable trigger ledger_entry_append_only');
    await api.db.raw('update ledger_entry set budget_window = budget_window - 1');
    await api.db.raw('alter table ledger_entry enable trigger ledger_entry_append_only');
    await spend('c', 0.000000001);
    const seen: LedgerEntry[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const [, page]: [number, Page] = await readJson<Page>(
        call(`/v1/ledger?limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`),
      );
      seen.push(...page.items);
      cursor = page.next_cursor;
      await spend('later', 1);
    }
    expect(seen.map(({ capability, kind }) => `${capability} ${kind}`)).toEqual([
      ...['c settle', 'c reserve', 'b settle', 'b reserve', 'a settle', 'a reserve'],
    ]);
    const [today, yesterday] = [await localDay('UTC'), await localDay('UTC', `today - interval '1 day'`)];
    expect(seen.map(({ window }) => window)).toEqual([...Array(2).fill(today), ...Array(4).fill(yesterday)]);
    expect(seen[0]).toEqual({
      entry_id: expect.any(String),
      at: expect.any(String),
      attempt_id: expect.stringMatching(/^att_/),
      kind: 'settle',
      amount_usd: 1e-9,
      certainty: 'exact',
      window: today,
      capability: 'c',
      endpoint: expect.stringMatching(/^http/),
      run_id: run.run_id,
      step_id: 's2',
    });
    const days = async (filter: string) =>
      (await readJson<Page>(call(`/v1/ledger?${filter}`)))[1].items.map(({ window }) => window);
    expect(await days(`until=${yesterday}`)).toEqual(Array(4).fill(yesterday));
    expect(new Set(await days(`since=${today}&until=${today}`))).toEqual(new Set([today]));
  });

  test('filters by kind, capability and run, and never shows another project', async () => {
    const [one, other] = [await aSpender(), await aSpender()];
    const lost = await one.claim('a', 0.5, { lease_ms: -10_000 });
    await loseExpiredAttempts(api.db);
    await settleAttempt(api.db, anEnd(lost, { settled_nano: 1n }));
    await one.spend('b', 0.5);
    await other.spend('a', 0.5);
    const kinds = async (filter: string) =>
      (await readJson<Page>(one.call(`/v1/ledger?${filter}`)))[1].items.map(
        ({ capability, kind, amount_usd, certainty }) => `${capability} ${kind} ${amount_usd} ${certainty}`,
      );
    expect(await kinds('kind=adjust')).toEqual(['a adjust -0.499999999 exact']);
    expect(await kinds('capability=a&kind=settle')).toEqual(['a settle 0.5 estimated']);
    expect(await kinds(`run_id=${one.run.run_id}&capability=b`)).toHaveLength(2);
    expect(await kinds(`run_id=${other.run.run_id}`)).toEqual([]);
  });

  test.each([
    ...['cursor=bm9uZQ', `cursor=${Buffer.from('2026-13-45.1').toString('base64url')}`, 'kind=gift'],
    ...['since=2026-02-30', 'run_id=%00', 'until=now', 'limit=201', 'format=xml', 'what=1'],
  ])('refuses ?%s', async (query) => {
    expect((await api.call(`/v1/ledger?${query}`)).status).toBe(422);
  });

  test('takes the earliest date that there is', async () => {
    expect((await api.call('/v1/ledger?since=0000-01-01&until=9999-12-31')).status).toBe(200);
  });

  test.each([
    ['format=csv', ''],
    ['limit=1', 'text/csv'],
  ])('is one CSV text with ?%s and Accept: %s', async (query, accept) => {
    const { spend, claim, call, projectId } = await aSpender();
    await spend('a', 0.000000001);
    const made = await claim('b', 12.5, { step: null, key: `call-${projectId}` });
    await api
      .db('attempt')
      .where({ attempt_id: made.attempt_id })
      .update({ endpoint: 'http://a.test/"x",y' });
    const answer = await call(`/v1/ledger?${query}`, { headers: { accept } });
    expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present');
    const lines = (await answer.text()).split('\r\n');
    const first =
      'entry_id,at,attempt_id,kind,amount_usd,certainty,window,capability,endpoint,run_id,step_id,overrun_usd,held_usd,pieces';
    expect(lines[0]).toBe(first);
    expect(lines[1]).toMatch(
      /^\d+,[^,]+Z,att_[^,]+,reserve,12\.5,exact,[\d-]+,b,"http:\/\/a\.test\/""x"",y",,,,,$/,
    );
    expect(lines[2]).toMatch(/,settle,0\.000000001,exact,[\d-]+,a,http:[^,]+,run_[^,]+,s0,,,$/);
    expect(lines.slice(3)).toEqual([expect.stringContaining(',reserve,0.000000001,'), '']);
  });
});

describe('a long CSV', () => {
  /** More than sockets hold, and many reads of the database. */
  const rows = isLong ? 50_000 : 15_000;
  let spender: Awaited<ReturnType<typeof aSpender>>;
  beforeAll(async () => {
    spender = await aSpender();
    const { attempt_id } = await spender.spend('a', 1);
    await api.db.raw(
      `insert into ledger_entry (attempt_id, kind, seq, project_id, capability, amount_nano, certainty, budget_window)
       select ?, 'adjust', n, ?, 'a', 0, 'exact', current_date from generate_series(1, ?) n`,
      [attempt_id, spender.projectId, rows],
    );
  });

  test('holds every entry once', async () => {
    const lines = (await (await spender.call('/v1/ledger?format=csv')).text()).trimEnd().split('\r\n');
    expect(lines).toHaveLength(rows + 3);
    expect(new Set(lines).size).toBe(rows + 3);
  });

  test('is no longer read when the client goes away', async () => {
    const away = new AbortController();
    const answer = await fetch(`${api.url}/v1/ledger?format=csv`, {
      headers: {
        authorization: `Bearer ${api.apiKey}`,
        'x-project-id': spender.projectId,
        'x-request-id': 'csv-left',
      },
      signal: away.signal,
    });
    await answer.body?.getReader().read();
    away.abort();
    const lines = () => api.log.filter((line) => line.includes('csv-left'));
    await waitFor('the end of the answer', () => lines().length > 0);
    expect(lines()).toEqual([expect.stringContaining('"aborted":true')]);
  });
});

describe('budgets', () => {
  const budgetsOf = async (call: Awaited<ReturnType<typeof aSpender>>['call']): Promise<Budget[]> =>
    (await readJson<{ items: Budget[] }>(call('/v1/budgets')))[1].items;
  const put = (call: Awaited<ReturnType<typeof aSpender>>['call'], body: object) =>
    call('/v1/budgets', { method: 'PUT', body });

  test('show limit, spending and marks of today, for the project and for all', async () => {
    const { spend, claim, call } = await aSpender('Pacific/Pago_Pago');
    const [project, global] = await budgetsOf(call);
    const timezone = 'Pacific/Pago_Pago';
    const window = await localDay(timezone);
    const next = await localDay(timezone, `today + interval '1 day'`);
    const empty = { daily_limit_usd: 0, forecast: null, spent_usd: 0, reserved_usd: 0, reached: [] };
    const facts = { scope: 'project', window, timezone, resets_at: `${next}T11:00:00.000Z` };
    expect(project).toEqual({ ...facts, ...empty });
    expect(global).toMatchObject({ scope: 'global', timezone: 'UTC', window: await localDay('UTC') });
    await put(call, { scope: 'project', daily_limit_usd: 10 });
    await spend('a', 8);
    await claim('a', 1.5);
    expect((await budgetsOf(call))[0]).toEqual({
      ...facts,
      daily_limit_usd: 10,
      forecast: expect.toBeOneOf([null, expect.objectContaining({ spend_usd: expect.any(Number) })]),
      spent_usd: 8,
      reserved_usd: 1.5,
      reached: [
        { percent: 50, at: expect.any(String) },
        { percent: 80, at: expect.any(String) },
      ],
    });
  });

  test('hold from the next reservation on, and take marks back that are no longer reached', async () => {
    const { spend, claim, call, run } = await aSpender();
    await spend('a', 1);
    const [status, budget] = await readJson<Budget>(put(call, { scope: 'project', daily_limit_usd: 1.25 }));
    expect([status, budget.daily_limit_usd, budget.reached.map(({ percent }) => percent)]).toEqual([
      ...[200, 1.25, [50, 80]],
    ]);
    const paid = await anInstance(api.db, { cost_type: 'per_call', rate_usd: 1, max_concurrency: 10 });
    const over = () => claimAttempt(api.db, aClaim(run, paid, { step_id: 'x', reserved_nano: 500_000_000n }));
    expect((await over()).outcome).toBe('over_budget');
    await claim('a', 0.25);
    const [, raised] = await readJson<Budget>(put(call, { scope: 'project', daily_limit_usd: 3 }));
    expect(raised).toMatchObject({ spent_usd: 1, reserved_usd: 0.25, reached: [] });
    expect((await over()).outcome).toBe('claimed');
    const [, none] = await readJson<Budget>(put(call, { scope: 'project', daily_limit_usd: 0 }));
    expect(none.daily_limit_usd).toBe(0);
    const [, costs] = await readJson<CostSummary>(call('/v1/costs'));
    expect(costs.daily_limit_usd).toBe(0);
    await claim('a', 100);
  });

  test('of all projects are seen by an operator only', async () => {
    const { call } = await aSpender();
    const { apiKey } = await api.createProject('tenant');
    const tenant = { authorization: `Bearer ${apiKey}` };
    expect((await budgetsOf(call)).map(({ scope }) => scope)).toEqual(['project', 'global']);
    const seen = await budgetsOf((path) => api.call(path, { headers: tenant }));
    expect(seen.map(({ scope }) => scope)).toEqual(['project']);
  });

  test.each(['budget:write', 'admin'] as const)('of all projects are not set by %s', async (scope) => {
    const headers = { authorization: `Bearer ${await api.createKey({ scopes: [scope] })}` };
    const body = { scope: 'global', daily_limit_usd: 1 };
    expect((await api.call('/v1/budgets', { method: 'PUT', body, headers })).status).toBe(403);
  });

  test('of all projects are set by an operator, and hold for every project', async () => {
    const { call, projectId, run } = await aSpender();
    const writer = await api.createKey({ scopes: ['budget:write'] });
    const headers = { authorization: `Bearer ${writer}` };
    const body = { scope: 'global', daily_limit_usd: 0.000000001 };
    const own = { scope: 'project', daily_limit_usd: 7 };
    expect((await api.call('/v1/budgets', { method: 'PUT', body: own, headers })).status).toBe(200);
    expect((await put(call, body)).status).toBe(200);
    const paid = await anInstance(api.db, { owner_project: projectId, cost_type: 'per_call', rate_usd: 1 });
    const claim = () => claimAttempt(api.db, aClaim(run, paid, { reserved_nano: 1_000_000_000n }));
    expect(await claim()).toMatchObject({ outcome: 'over_budget', output: { scope: 'global' } });
    expect((await budgetsOf(call))[1]?.daily_limit_usd).toBe(0.000000001);
    await put(call, { scope: 'global', daily_limit_usd: 0 });
    expect(await claim()).toMatchObject({ outcome: 'claimed' });
  });

  test('need budget:write, and a limit that is an amount', async () => {
    const reader = await api.createKey({ scopes: ['cost:read'] });
    const body = { scope: 'project', daily_limit_usd: 1 };
    const headers = { authorization: `Bearer ${reader}` };
    expect((await api.call('/v1/budgets', { method: 'PUT', body, headers })).status).toBe(403);
    for (const limit of [-1, '1', null, 1e9]) {
      const wrong = { scope: 'project', daily_limit_usd: limit };
      expect((await api.call('/v1/budgets', { method: 'PUT', body: wrong })).status).toBe(422);
    }
    const elsewhere = await aProject(api.db);
    const foreign = { 'x-project-id': elsewhere.project_id };
    expect((await api.call('/v1/budgets', { method: 'PUT', body, headers: foreign })).status).toBe(403);
  });
});
