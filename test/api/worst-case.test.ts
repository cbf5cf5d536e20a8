/** A price by the input on the real router: what is reserved, what is charged, and what an overrun costs its instance. */

import type { CapabilityDetail } from '@capstan/core/contracts/capability';
import type { Decision } from '@capstan/core/contracts/decision';
import type { LedgerEntry } from '@capstan/core/contracts/money';
import type { Plan } from '@capstan/core/contracts/plan';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loseExpiredAttempts } from '../../src/db/attempt/attempt.ts';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import { listBreaches, watchCommits } from '../support/commit-watch.ts';
import { aLimitedProject, execOn, registerInstance } from '../support/direct-calls.ts';
import { aClaim, anEnd, anInstance, aRun, claimAttempt, settleAttempt } from '../support/factories.ts';
import { answer, echo, type Handler, type Instance, type InstanceOptions } from '../support/fleet.ts';
import { findDrift, findViolations } from '../support/invariants.ts';
import { isLong } from '../support/long.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
const instances: Instance[] = [];
beforeAll(async () => {
  api = await startTestApi();
  await watchCommits(api.db);
});
afterAll(async () => {
  await Promise.all(instances.map((instance) => instance.stop()));
  await api.close();
});

const prices = { in: 0.000_003, out: 0.000_015 };
const worst_case = `{{ (input.messages | tokens) * ${prices.in} + (input.max_output_tokens ?? 4096) * ${prices.out} }}`;
const cost_model = { type: 'per_call', rate_usd: 0.2, worst_case };

async function aModel(
  name: string,
  handle: Handler,
  terms: Pick<InstanceOptions, 'cost_model' | 'settle'> = { cost_model, settle: 'reported' },
): Promise<Instance> {
  const instance = await registerInstance(api, {
    name,
    ...terms,
    tags: [],
    max_concurrency: 64,
  });
  instance.handle = handle;
  instances.push(instance);
  return instance;
}

/** Reports this cost. */
function costing(cost_usd: number): Handler {
  return (_, response) => answer(response, 200, { ok: true, output: { cost_usd } });
}

const ask = (content: string, max_output_tokens?: number) => ({
  messages: [{ role: 'user', content }],
  ...(max_output_tokens === undefined ? {} : { max_output_tokens }),
});

function exec(name: string, input: object, more: object = {}, headers: Record<string, string> = {}) {
  return execOn(api, name, { body: { input, ...more }, headers });
}

/** Direct calls are answered before their ends are written. */
async function settled(capability: string): Promise<void> {
  await waitFor('all ends to be written', async () => {
    const open = await api.db('attempt').where({ capability }).whereNull('finished_at');
    return open.length === 0;
  });
}

test('a call of ten tokens under a ceiling of 0.05 USD goes where the rate is 0.20', async () => {
  const { endpoint } = await aModel('model.small', costing(0.0002));
  const input = ask('ten tokens, or about as many', 10);
  const ceiling = { budget_ceiling_usd: 0.05 };
  const { status, body } = await exec('model.small', input, ceiling);
  expect([status, body.routing?.chosen]).toEqual([200, endpoint]);
  expect(body.routing).toMatchObject({ reserved_usd: 0.000_33, settled_usd: 0.0002 });
  expect(body.routing?.candidates).toMatchObject([{ worst_case_usd: 0.000_33 }]);
  expect(body.routing?.reason).toContain('this input costs at most 0.00033 USD');

  const large = await exec('model.small', ask('a long answer', 10_000), ceiling);
  expect([large.status, large.body.code]).toEqual([402, 'ceiling_too_low']);
  const route = (more: object) =>
    readJson<Decision>(api.call('/v1/route', { body: { capability: 'model.small', ...ceiling, ...more } }));
  expect((await route({ input }))[1].chosen).toBe(endpoint);
  expect((await route({}))[1].chosen).toBeNull();
});

test('each of many calls in a row reserves what its own input may cost', async () => {
  await aModel('model.row', costing(0.0001));
  for (let n = 1; n <= 12; n++) {
    const { body } = await exec('model.row', ask('x', n * 100));
    expect(body.routing?.reserved_usd).toBeCloseTo(0.000_099 + n * 0.0015, 9);
  }
  await settled('model.row');
  expect(await api.db('attempt').where({ capability: 'model.row', state: 'released' })).toEqual([]);
});

test('a plan uses the worst case of an input that it knows', async () => {
  await aModel('model.planned', costing(0.0002));
  const steps = [
    { id: 'known', capability: 'model.planned', input: ask('hi', 1_000), retry: { max: 0 } },
    {
      id: 'unknown',
      capability: 'model.planned',
      input: { ...ask('hi'), max_output_tokens: '{{ steps.known.output.n }}' },
      retry: { max: 0 },
    },
  ];
  const [status, plan] = await readJson<Plan>(
    api.call('/v1/plan', { body: { definition: { pipeline: 'asks', version: '1', steps }, job: {} } }),
  );
  expect(status).toBe(200);
  const costs = plan.steps.map(({ cost_usd }) => [cost_usd.min, cost_usd.worst]);
  expect(costs).toEqual([
    [0, 0.015_102],
    [0, 0.2],
  ]);
  expect(plan.steps[0]?.candidates).toMatchObject([{ worst_case_usd: 0.015_102 }]);
});

test('an input for which the expression fails reserves the rate, and the decision gives the reason', async () => {
  await aModel('model.odd', costing(0.01));
  const { body } = await exec('model.odd', { max_output_tokens: 10 });
  expect(body.routing).toMatchObject({ reserved_usd: 0.2, settled_usd: 0.01 });
  expect(body.routing?.candidates[0]?.worst_case_fault).toContain('input.messages does not exist');
  expect(body.routing?.reason).toContain('its worst case does not count');
});

/** A small generator, so that a failure can be repeated. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const manyCalls = isLong ? 1_000 : 50;

test('of many calls none costs more than it reserved, and reservations are at most 1.5 times the costs', async () => {
  const random = createRandom(7);
  await aModel('model.tokens', ({ input }, response) => {
    const { messages, max_output_tokens } = input as ReturnType<typeof ask>;
    const inputTokens = Math.ceil(Buffer.byteLength(JSON.stringify(messages)) / 3.5);
    const outputTokens = Math.ceil((max_output_tokens ?? 4_096) * (0.75 + random() / 4));
    const cost_usd = Number((inputTokens * prices.in + outputTokens * prices.out).toFixed(12));
    answer(response, 200, { ok: true, output: { cost_usd } });
  });
  const call = async () => {
    const words = 'word '.repeat(1 + Math.floor(random() * 200));
    const { status, body } = await exec('model.tokens', ask(words, 50 + Math.floor(random() * 2_000)));
    expect([status, body.detail]).toEqual([200, undefined]);
  };
  for (let n = 0; n < manyCalls; n += 25) await Promise.all(Array.from({ length: 25 }, call));
  await settled('model.tokens');
  const row = await api
    .db('attempt')
    .where({ capability: 'model.tokens', state: 'settled' })
    .first(
      api.db.raw(`count(*)::int as calls, (count(*) filter (where settled_nano > reserved_nano))::int as above,
        sum(reserved_nano) / sum(settled_nano) as ratio`),
    );
  expect(row).toMatchObject({ calls: manyCalls, above: 0 });
  expect(Number(row.ratio)).toBeGreaterThan(1);
  expect(Number(row.ratio)).toBeLessThanOrEqual(1.5);
  expect(await findViolations(api.db, [])).toEqual([]);
});

test('calls at once share a budget as far as it has room for the price of each by its rate', async () => {
  const arrived: (() => void)[] = [];
  let opened = false;
  await aModel('model.shared', async (_, response) => {
    if (!opened) await new Promise<void>((resolve) => arrived.push(resolve));
    answer(response, 200, { ok: true, output: { cost_usd: 0.015 } });
  });
  const { headers, projectId } = await aLimitedProject(api, 0.65);
  const input = ask('x', 1_000); // 0.015 USD and some, and 0.2 by the rate
  const calls = Array.from({ length: 20 }, () => exec('model.shared', input, {}, headers));
  await waitFor('all money to be reserved', async () => arrived.length === 4);
  opened = true;
  for (const open of arrived) open();
  const ended = await Promise.all(calls);
  const served = ended.filter(({ status }) => status === 200).length;
  expect(served).toBe(4);
  expect(new Set(ended.map(({ status }) => status))).toEqual(new Set([200, 429]));
  expect(await listBreaches(api.db)).toEqual([]);
  const spent = await waitFor('all ends to be written', async () => {
    const row = await api.db('budget').where('scope', `project:${projectId}`).first();
    return row?.reserved_nano === '0' ? row.spent_nano : undefined;
  });
  expect(spent).toBe('60000000');
});

describe('a call that costs more than its worst case', () => {
  const small = ask('x', 100); // 0.001599 USD
  const worstUsd = 0.001_599;

  async function overrunsOf(name: string) {
    const [
      ,
      {
        instances: [one],
      },
    ] = await readJson<CapabilityDetail>(api.call(`/v1/capabilities/${name}`));
    return one?.overruns;
  }

  /** Makes these of the last three overruns an hour older. */
  async function moveOverruns(name: string, places: readonly string[]): Promise<void> {
    for (const place of places) {
      await api.db.raw(
        `update instance set overran = jsonb_set(overran, array[:project, :place],
           to_jsonb((overran -> :project ->> :place::int)::float8 - 3600000)) where name = :name`,
        { name, place, project: api.projectId },
      );
    }
  }

  test('is charged in full up to the rate, and the ledger shows the overrun', async () => {
    const model = await aModel('model.over', costing(0.1));
    const { body } = await exec('model.over', small);
    expect(body.routing).toMatchObject({ reserved_usd: worstUsd, settled_usd: 0.1 });
    model.handle = costing(7);
    expect((await exec('model.over', small)).body.routing).toMatchObject({ settled_usd: 0.2 });
    model.handle = costing(0.001);
    expect((await exec('model.over', small)).body.routing).toMatchObject({ settled_usd: 0.001 });
    await settled('model.over');
    const [, { items }] = await readJson<{ items: LedgerEntry[] }>(
      api.call('/v1/ledger?capability=model.over&kind=settle'),
    );
    expect(items.map(({ amount_usd, overrun_usd }) => [amount_usd, overrun_usd])).toEqual([
      [0.001, undefined],
      [0.2, 0.198_401],
      [0.1, 0.098_401],
    ]);
    const csv = await (await api.call('/v1/ledger?capability=model.over&kind=settle&format=csv')).text();
    expect(csv).toMatch(/,0\.1,exact,.*,0\.098401,,\r\n/);
    expect(await overrunsOf('model.over')).toMatchObject({ total: 2 });
    expect(await findViolations(api.db, [])).toEqual([]);
  });

  test('is charged for its time with a price per second, up to the time that it was allowed', async () => {
    const perSecond = { type: 'per_second', rate_usd: 1, worst_case: '{{ 0.000001 * input.frames }}' };
    await aModel('render.fast', echo, { cost_model: perSecond });
    const { body } = await exec('render.fast', { frames: 2 }, { budget_ceiling_usd: 60 });
    const { reserved_usd, settled_usd } = body.routing as Decision;
    expect(reserved_usd).toBe(0.000_002);
    expect(settled_usd).toBeGreaterThan(reserved_usd);
    expect(settled_usd).toBeLessThanOrEqual(60);
    expect(await overrunsOf('render.fast')).toMatchObject({ total: 1 });
  });

  test('is corrected above its reservation when it was thought to be lost', async () => {
    const run = await aRun(api.db, { project_id: api.projectId });
    const paid = await anInstance(api.db, { cost_type: 'per_call', rate_usd: 1 });
    const claim = { capability: 'model.lost', reserved_nano: 10n, lease_ms: -10_000 };
    const made = aClaim(run, paid, claim);
    expect(await claimAttempt(api.db, made)).toMatchObject({ outcome: 'claimed' });
    await loseExpiredAttempts(api.db);
    await settleAttempt(api.db, anEnd(made, { settled_nano: 15n }));
    const [, { items }] = await readJson<{ items: LedgerEntry[] }>(
      api.call('/v1/ledger?capability=model.lost'),
    );
    expect(items.map(({ kind, amount_usd, overrun_usd }) => [kind, amount_usd, overrun_usd])).toEqual([
      ['adjust', 5e-9, 5e-9],
      ['settle', 10e-9, undefined],
      ['reserve', 10e-9, undefined],
    ]);
    expect(await findDrift(api.db)).toEqual([]);
  });

  test('takes spent above a limit by the overrun only, and stops the calls after it', async () => {
    await aModel('model.limit', costing(0.15));
    const { headers, projectId } = await aLimitedProject(api, 0.002);
    expect((await exec('model.limit', small, {}, headers)).body.routing).toMatchObject({ settled_usd: 0.15 });
    await settled('model.limit');
    expect((await exec('model.limit', small, {}, headers)).status).toBe(402);
    const rows = await api
      .db('budget')
      .where('scope', `project:${projectId}`)
      .select('spent_nano', 'reserved_nano');
    expect(rows).toEqual([{ spent_nano: '150000000', reserved_nano: '0' }]);
    expect(await listBreaches(api.db)).toEqual([]);
  });

  test('costs its instance the privilege at the third in an hour, until the hour is over', async () => {
    await aModel('model.trust', costing(0.1));
    const ceiling = { budget_ceiling_usd: 0.05 };
    for (let n = 0; n < 3; n++) expect((await exec('model.trust', small, ceiling)).status).toBe(200);
    expect((await overrunsOf('model.trust'))?.total).toBe(3);
    expect((await exec('model.trust', small, ceiling)).status).toBe(402);
    const { body } = await exec('model.trust', small);
    expect(body.routing).toMatchObject({ reserved_usd: 0.2, settled_usd: 0.1 });
    expect(body.routing?.candidates[0]?.worst_case_fault).toBe(
      'three calls cost more than it within an hour',
    );
    expect((await overrunsOf('model.trust'))?.total).toBe(3);

    await moveOverruns('model.trust', ['0', '1', '2']);
    await waitFor(
      'the hour to be over',
      async () => (await exec('model.trust', small, ceiling)).status === 200,
    );
    expect((await overrunsOf('model.trust'))?.total).toBe(4);
  });

  test('counts only together with others of the same hour', async () => {
    await aModel('model.rare', costing(0.1));
    for (let n = 0; n < 2; n++) await exec('model.rare', small);
    await moveOverruns('model.rare', ['1']);
    await exec('model.rare', small);
    expect(await overrunsOf('model.rare')).toMatchObject({ total: 3 });
    expect((await exec('model.rare', small)).body.routing).toMatchObject({ reserved_usd: worstUsd });
  });

  test('costs it nothing with other projects', async () => {
    await aModel('model.others', costing(0.1));
    const [one, other] = [await aLimitedProject(api, 10), await aLimitedProject(api, 10)];
    const ceiling = { budget_ceiling_usd: 0.05 };
    for (let n = 0; n < 3; n++) await exec('model.others', small, ceiling, one.headers);
    expect((await exec('model.others', small, ceiling, one.headers)).status).toBe(402);
    const { status, body } = await exec('model.others', small, ceiling, other.headers);
    expect([status, body.routing?.reserved_usd]).toEqual([200, worstUsd]);
    const { rows } = await api.db.raw(
      `select overran -> ? ->> 2 as third, overran -> ? ->> 0 as last
      from instance where name = 'model.others'`,
      [one.projectId, other.projectId],
    );
    expect(rows).toEqual([{ third: expect.stringMatching(/^\d+$/), last: expect.stringMatching(/^\d+$/) }]);
  });

  test.each<[name: string, calls: number, terms: Parameters<typeof aModel>[2], cost: number]>([
    [
      'per-call',
      60,
      { cost_model: { ...cost_model, rate_usd: 1, worst_case: '{{ 0.000001 }}' }, settle: 'reported' },
      1,
    ],
    [
      'half',
      25,
      { cost_model: { ...cost_model, rate_usd: 0.8, worst_case: '{{ 0.4 }}' }, settle: 'reported' },
      0.8,
    ],
  ])('at once with others exceeds a limit by one of them at most (%s)', async (name, calls, terms, cost) => {
    const held: (() => void)[] = [];
    await aModel(
      `model.wave-${name}`,
      async (_, response) => {
        await new Promise<void>((resolve) => held.push(resolve));
        answer(response, 200, { ok: true, output: { cost_usd: cost } });
      },
      terms,
    );
    const { headers, projectId } = await aLimitedProject(api, 2);
    const ended = Array.from({ length: calls }, () => exec(`model.wave-${name}`, {}, {}, headers));
    let refused = 0;
    for (const call of ended)
      void call.then(({ status }) => {
        refused += status === 200 ? 0 : 1;
      });
    await waitFor('each call to be at the instance or refused', async () => held.length + refused === calls);
    for (const open of held) open();
    await Promise.all(ended);
    await settled(`model.wave-${name}`);
    const { spent_nano } = await api.db('budget').where('scope', `project:${projectId}`).first('spent_nano');
    expect(Number(spent_nano) / 1e9).toBeGreaterThanOrEqual(2 - cost);
    expect(Number(spent_nano) / 1e9).toBeLessThanOrEqual(2 + cost);
    expect(await listBreaches(api.db)).toEqual([]);
  });
});
