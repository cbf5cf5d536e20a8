/** Costs, calls and tokens of any days, by one or two groups: as an answer, and as CSV. */
import type { CallRecord } from '@capstan/core/contracts/call';
import type { CostSeries, CostSummary, ScopedBudget } from '@capstan/core/contracts/money';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { leastId } from '../../src/db/partitions.ts';
import { newId } from '../../src/parts/ids.ts';
import { noMaintenance, readJson, startTestApi, type TestApi } from '../support/api.ts';

let api: TestApi;
beforeAll(async () => {
  // No maintenance: it would delete old calls, and correct budgets that are written by hand.
  api = await startTestApi(noMaintenance);
});
afterAll(() => api.close());

const usd = 1_000_000_000;

interface StoredCall {
  readonly capability?: string;
  readonly endpoint?: string;
  readonly model?: string;
  readonly tokens?: Readonly<Record<string, number>>;
  readonly scopes?: readonly string[];
  readonly cost?: number;
  readonly state?: string;
}

interface ScopedBudgetItems {
  readonly items: readonly ScopedBudget[];
}

let stored = 0;

/** A project of a zone, with calls at moments that the test names. */
async function aProject(timezone = 'UTC') {
  const { projectId, apiKey } = await api.createProject('spender');
  await api.db('project').where({ project_id: projectId }).update({ timezone });
  const headers = { authorization: `Bearer ${apiKey}` };
  const addCall = async (at: string, { cost = 0, state = 'settled', ...facts }: StoredCall = {}) => {
    const started_at = new Date(at);
    const attempt_id = `${leastId('att', started_at)}-7000-8000-${String(stored++).padStart(12, '0')}`;
    await api.db('attempt').insert({
      attempt_id,
      project_id: projectId,
      key: attempt_id,
      number: 1,
      instance_id: 'ins_1',
      state,
      capability: 'paint',
      endpoint: 'http://a',
      token: api.db.raw('gen_random_uuid()'),
      lease_until: started_at,
      cost_type: 'per_call',
      rate_usd: 1,
      reserved_nano: cost * usd,
      settled_nano: state === 'dispatched' ? null : cost * usd,
      started_at,
      finished_at: state === 'dispatched' ? null : started_at,
      ...facts,
      scopes: facts.scopes === undefined ? null : [...facts.scopes],
    });
  };
  const ask = <Body>(query: string) => readJson<Body>(api.call(`/v1/costs${query}`, { headers }));
  const series = async (query: string): Promise<CostSeries> => {
    const [status, body] = await ask<CostSeries>(`/series?${query}`);
    expect([status, body]).toEqual([200, body]);
    return body;
  };
  const sums = async (query: string) =>
    Object.fromEntries(
      (await series(query)).series.map(({ name, and, usd, calls }) => [
        and === undefined ? name : `${name} × ${and}`,
        [usd, calls],
      ]),
    );
  const list = async (filter: Readonly<Record<string, string>>) => {
    const query = new URLSearchParams({ ...filter, limit: '200' });
    return (
      await readJson<{ readonly items: readonly CallRecord[] }>(api.call(`/v1/calls?${query}`, { headers }))
    )[1].items;
  };
  const addBudget = (scope: string, body: object) =>
    api.call(`/v1/budgets/scoped/${scope}`, { method: 'PUT', body, headers });
  const budgets = async () =>
    (await readJson<ScopedBudgetItems>(api.call('/v1/budgets/scoped', { headers })))[1].items;
  const csv = async (query: string) =>
    (await api.call(`/v1/costs/series?${query}&format=csv`, { headers })).text();
  return { projectId, addCall, ask, series, sums, list, csv, addBudget, budgets };
}

const may = 'from=2026-05-01&to=2026-05-31';

describe('a range of days', () => {
  test('has the calls of its days in the zone of the project, over a change of clocks', async () => {
    const { addCall, series } = await aProject('Europe/Berlin');
    await addCall('2026-03-27T22:59:59Z', { cost: 1 });
    await addCall('2026-03-27T23:00:00Z', { cost: 2 }); // the 28th
    await addCall('2026-03-28T22:59:59Z', { cost: 4 });
    await addCall('2026-03-28T23:00:00Z', { cost: 8 }); // the 29th, of 23 hours
    await addCall('2026-03-29T21:59:59Z', { cost: 16 });
    await addCall('2026-03-29T22:00:00Z', { cost: 32 }); // the 30th
    const { starts, until, usd, calls, series: groups } = await series('from=2026-03-28&to=2026-03-29');
    expect({ starts, until, usd, calls }).toEqual({
      starts: ['2026-03-27T23:00:00.000Z', '2026-03-28T23:00:00.000Z'],
      until: '2026-03-29T22:00:00.000Z',
      usd: 30,
      calls: 4,
    });
    expect(groups).toEqual([
      {
        name: 'paint',
        usd: 30,
        calls: 4,
        tokens: 0,
        points: [
          ['2026-03-27T23:00:00.000Z', 6, 2, 0],
          ['2026-03-28T23:00:00.000Z', 24, 2, 0],
        ],
      },
    ]);
    const hours = await series('from=2026-03-29&to=2026-03-29');
    expect([hours.bucket, hours.starts.length, hours.usd]).toEqual(['hour', 23, 24]);
  });

  test('counts free, running and cached calls too', async () => {
    const { addCall, series } = await aProject();
    await addCall('2026-05-02T10:00Z');
    await addCall('2026-05-02T10:00Z', { state: 'dispatched', cost: 3 });
    await addCall('2026-05-03T10:00Z', { state: 'cached' });
    expect(await series(may)).toMatchObject({ bucket: 'day', usd: 0, calls: 3 });
  });

  test.each([
    ['period=day&from=2026-05-01', 'give `period`, or `from` and `to`'],
    ['to=2026-05-01', '`to` needs `from`'],
    ['from=2026-05-02&to=2026-05-01', '2026-05-01 is before 2026-05-02'],
    ['from=2026-02-30&to=2026-05-01', 'date'],
    ['from=2098-01-01', 'is after today'],
    ['from=1999-12-31&to=2026-01-01', 'a day of 2000 to 2099'],
    ['period=month&by=label', 'by'],
    [`${may}&bucket=hour`, 'hours show up to 8 days, not 31'],
    [`${may}&label=team`, 'NAME=VALUE'],
    [`${may}&user=%00`, 'NUL'],
  ])('%s is refused', async (query, why) => {
    const { ask } = await aProject();
    const [status, body] = await ask(`/series?${query}`);
    expect([status, JSON.stringify(body)]).toEqual([422, expect.stringContaining(why)]);
  });

  test('is the same for the sum, which is of the budgets', async () => {
    const { projectId, ask } = await aProject('Asia/Tokyo');
    const spent = [
      ['2026-05-01', 1],
      ['2026-05-02', 2],
      ['2026-05-03', 4],
    ] as const;
    await api
      .db('budget')
      .insert(
        [`project:${projectId}`, `capability:${projectId}:paint`].flatMap((scope) =>
          spent.map(([window_start, dollars]) => ({ scope, window_start, spent_nano: dollars * usd })),
        ),
      );
    const [, days] = await ask<CostSummary>('?from=2026-05-02&to=2026-05-03');
    expect(days).toMatchObject({
      period: null,
      from: '2026-05-02',
      to: '2026-05-03',
      timezone: 'Asia/Tokyo',
      spend_usd: 6,
      forecast_usd: null,
      by_capability: [{ capability: 'paint', spend_usd: 6 }],
    });
    const [, all] = await ask<CostSummary>('?period=all');
    expect(all).toMatchObject({ period: 'all', from: null, spend_usd: 7 });
    expect((await ask<CostSummary>('?period=yesterday'))[1]).toMatchObject({ spend_usd: 0 });
  });
});

describe('groups', () => {
  test('are those of the key, user, labels and pipeline; a run has those of the run at the top', async () => {
    const { addCall, sums, series } = await aProject();
    const labels = ['label:team=ads', 'label:mood=calm'];
    const top = ['key:k', 'pipeline:reel', ...labels];
    await addCall('2026-05-02T10:00Z', {
      scopes: top,
      cost: 1,
      model: 'm-1',
      tokens: { input: 5, output: 2, reasoning: 1 },
    });
    const below = ['key:k', 'pipeline:cut', ...labels];
    await addCall('2026-05-02T10:00Z', {
      scopes: below,
      cost: 2,
      endpoint: 'http://b',
      model: 'm-1',
      tokens: { output: 3 },
    });
    const scopes = ['key:k2', 'user:u', 'label:team=web'];
    await addCall('2026-05-03T10:00Z', { scopes, cost: 4, capability: 'draw' });
    await addCall('2026-05-03T11:00Z', { cost: 8 });
    expect(await sums(`${may}&by=key`)).toEqual({ '': [8, 1], k2: [4, 1], k: [3, 2] });
    expect(await sums(`${may}&by=label:team`)).toEqual({ '': [8, 1], web: [4, 1], ads: [3, 2] });
    expect(await sums(`${may}&by=user`)).toEqual({ '': [11, 3], u: [4, 1] });
    expect(await sums(`${may}&by=pipeline`)).toEqual({ '': [12, 2], cut: [2, 1], reel: [1, 1] });
    expect(await sums(`${may}&by=endpoint`)).toEqual({ 'http://a': [13, 3], 'http://b': [2, 1] });
    expect(await sums(`${may}&by=label:team&and=capability`)).toEqual({
      ' × paint': [8, 1],
      'web × draw': [4, 1],
      'ads × paint': [3, 2],
    });
    expect(await sums(`${may}&by=label:team&and=label:mood`)).toEqual({
      ' × ': [8, 1],
      'web × ': [4, 1],
      'ads × calm': [3, 2],
    });
    expect((await series(`${may}&by=model`)).series).toMatchObject([
      { name: '', usd: 12, calls: 2, tokens: 0 },
      { name: 'm-1', usd: 3, calls: 2, tokens: 10 },
    ]);
    expect(await sums(`${may}&by=user&label=mood%3Dcalm&model=m-1`)).toEqual({ '': [3, 2] });
    expect(await sums(`${may}&by=capability&label=team%3Dads`)).toEqual({ paint: [3, 2] });
    expect(await sums(`${may}&key=k2&capability=draw&user=u`)).toEqual({ draw: [4, 1] });
    expect(await sums(`${may}&key=k&pipeline=cut&endpoint=${encodeURIComponent('http://b')}`)).toEqual({
      paint: [2, 1],
    });
    expect(await sums(`${may}&key=k2&capability=paint`)).toEqual({});
  });

  test('of keys have their names, also in CSV, whose texts are no formulas', async () => {
    const { projectId, addCall, series, csv } = await aProject();
    const asked = { name: '=ads, "team"', scopes: ['cost:read'], projects: [projectId] };
    const [, { key_id: keyId }] = await readJson<{ key_id: string }>(api.call('/v1/keys', { body: asked }));
    await addCall('2026-05-02T10:00Z', { scopes: [`key:${keyId}`, 'user:@sum(1)'], cost: 1.5 });
    await addCall('2026-05-03T10:00Z', { scopes: ['key:gone', 'user:-1'], cost: 0.25 });
    expect((await series(`${may}&by=key&and=user`)).series).toMatchObject([
      { name: keyId, title: '=ads, "team"', and: '@sum(1)', usd: 1.5 },
      { name: 'gone', and: '-1', usd: 0.25 },
    ]);
    expect(await csv(`from=2026-05-02&to=2026-05-03&by=key&and=user`)).toBe(
      [
        'from,until,key,key_name,user,usd,calls,tokens',
        `2026-05-02T00:00:00.000Z,2026-05-03T00:00:00.000Z,${keyId},"'=ads, ""team""",'@sum(1),1.5,1,0`,
        `2026-05-03T00:00:00.000Z,2026-05-04T00:00:00.000Z,gone,,'-1,0.25,1,0`,
        '',
      ].join('\r\n'),
    );
  });

  test('beyond the fifty most expensive are one, which no label can pretend to be', async () => {
    const { addCall, series } = await aProject();
    for (let team = 1; team <= 52; team += 1) {
      const name = team === 52 ? 'others' : String(team);
      await addCall('2026-05-02T10:00Z', { scopes: [`label:team=${name}`], cost: team });
    }
    const { series: groups, usd: sum, calls } = await series(`${may}&by=label:team`);
    expect([groups.length, groups[0]?.name, groups[0]?.is_rest]).toEqual([51, 'others', undefined]);
    expect(groups.at(-1)).toMatchObject({ name: 'others', is_rest: true, usd: 3, calls: 2 });
    expect([sum, calls]).toEqual([(52 * 53) / 2, 52]);
  });

  test('of another project are not shown', async () => {
    const { addCall } = await aProject();
    const { series } = await aProject();
    await addCall('2026-05-02T10:00Z', { scopes: [`key:${newId('call')}`], cost: 1 });
    expect(await series(`${may}&by=key`)).toMatchObject({ series: [], calls: 0, usd: 0 });
  });
});

test('the days of a range add up to it, and a group has as many calls as the list of its calls', async () => {
  const zones = ['Asia/Kolkata', 'America/Los_Angeles'];
  for (const zone of zones) {
    const { addCall, series, list } = await aProject(zone);
    for (let hour = 0; hour < 72; hour += 5) {
      const at = new Date(Date.UTC(2026, 2, 7, hour)).toISOString(); // clocks change on the 8th, in the second zone
      const scopes = [`key:k${hour % 2}`, `label:team=t ${hour % 3}`, 'pipeline:p'];
      await addCall(at, { scopes, cost: 1 + hour, model: 'm', state: hour % 4 === 0 ? 'cached' : 'settled' });
    }
    const days = ['2026-03-06', '2026-03-07', '2026-03-08', '2026-03-09', '2026-03-10'];
    const alone = await Promise.all(days.map((day) => series(`from=${day}&to=${day}`)));
    const whole = await series('from=2026-03-06&to=2026-03-10&by=key&and=label:team&pipeline=p');
    const sum = (part: 'usd' | 'calls') => alone.reduce((all, one) => all + one[part], 0);
    expect([whole.usd, whole.calls]).toEqual([sum('usd'), sum('calls')]);
    for (const { name, and, calls } of whole.series) {
      const { starts, until } = whole;
      const filter = {
        since: starts[0] ?? '',
        until,
        key: name,
        label: `team=${and}`,
        pipeline: 'p',
        model: 'm',
      };
      expect(await list(filter)).toHaveLength(calls);
    }
  }
});

test('a budget foretells the end of its window by the average rate since it was added', async () => {
  const { projectId, addBudget, budgets } = await aProject();
  await addBudget('label:team=ads', { limit_usd: 1_000_000, period: 'month' });
  const scope = `budget:${projectId}:month:label:team=ads`;
  const month = new Date(`${new Date().toISOString().slice(0, 8)}01`);
  const window_start = month.toISOString().slice(0, 10);
  await api
    .db('budget')
    .insert({ scope, window_start, spent_nano: 3 * usd })
    .onConflict()
    .ignore();
  await api
    .db('budget')
    .where({ scope, window_start })
    .update({ spent_nano: 3 * usd });
  expect((await budgets())[0]).toMatchObject({ spent_usd: 3, forecast: null }); // added recently
  await api.db('scoped_budget').where({ project_id: projectId }).update({ created_at: '2020-01-01' });
  const now = Date.now();
  const [budget] = await budgets();
  const [passed, left] = [now - month.getTime(), Date.parse(budget?.resets_at ?? '') - now];
  const isEarly = passed < (passed + left) / 24;
  const spend_usd = expect.closeTo(3 + (3 / passed) * left, 1);
  expect(budget?.forecast).toEqual(isEarly ? null : { spend_usd, limit_at: null });
});

test('an index gives the calls of a time span, not all calls of the project', async () => {
  const { projectId } = await aProject();
  const { rows } = await api.db.raw(
    `explain select a.scopes from attempt a where a.project_id = ? and a.attempt_id collate "C" >= 'att_1'
       and a.attempt_id collate "C" < 'att_2'`,
    [projectId],
  );
  expect(JSON.stringify(rows)).toMatch(
    /Index Cond: [^"]*project_id = [^"]*attempt_id[^"]* >= [^"]*attempt_id[^"]* < /,
  );
});
