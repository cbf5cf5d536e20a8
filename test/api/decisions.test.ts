import type { Decision, DecisionDetail, DecisionListed } from '@capstan/core/contracts/decision';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import { aLimitedProject, execOn, registerInstance } from '../support/direct-calls.ts';
import type { Instance } from '../support/fleet.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
let free: Instance;
let paid: Instance;
const cost_model = { type: 'per_call', rate_usd: 0.2 };
beforeAll(async () => {
  api = await startTestApi();
  const input = { type: 'object', required: ['clips'] };
  free = await registerInstance(api, { name: 'concat', version: '1.0.0', input });
  paid = await registerInstance(api, { name: 'concat', version: '2.0.0', cost_model, tags: ['hosted'] });
  await waitFor('both specs to be read', async () => {
    const rows = await api.db('instance').select('spec_digest');
    return rows.length === 2 && rows.every(({ spec_digest }) => spec_digest !== null);
  });
});
afterAll(async () => {
  await Promise.all([free.stop(), paid.stop()]);
  await api.close();
});

function ask(body: object, headers = {}) {
  return readJson<Decision>(api.call('/v1/route', { body: { capability: 'concat', ...body }, headers }));
}
function read(id: string | undefined, headers = {}) {
  return readJson<DecisionDetail>(api.call(`/v1/decisions/${id}`, { headers }));
}

/** As the router has them, which may be a poll later. */
function askUntil(body: object, chosen: string) {
  return waitFor(`${chosen} to be chosen`, async () => {
    const [, decision] = await ask(body);
    return decision.chosen === chosen ? decision : undefined;
  });
}

function verdictOf({ candidates }: Decision, { endpoint }: Instance) {
  return candidates.find((candidate) => candidate.endpoint === endpoint)?.verdict;
}

describe('asking for a route', () => {
  test('shows the choice and claims nothing', async () => {
    const [, decision] = await ask({});
    expect(decision.chosen).toBe(free.endpoint);
    expect(decision.candidates).toMatchObject([
      { endpoint: free.endpoint, tier: 0, cost_usd: 0, verdict: 'chosen' },
      { endpoint: paid.endpoint, tier: 1, cost_usd: 0.2, verdict: 'worse' },
    ]);
    expect(await api.db('attempt').select('*')).toEqual([]);
    expect(await api.db('budget').whereNot({ window_start: '-infinity' })).toEqual([]);
    expect((await read(decision.decision_id))[0]).toBe(404);
  });

  test('rules out instances whose schema refuses the input', async () => {
    const decision = await askUntil({ input: {} }, paid.endpoint);
    expect(verdictOf(decision, free)).toBe('input_invalid');
    const [, accepted] = await ask({ input: { clips: [] } });
    expect(accepted.chosen).toBe(free.endpoint);
  });

  test('obeys version and ceiling', async () => {
    const [, decision] = await ask({ version: '^2' });
    expect([decision.chosen, verdictOf(decision, free)]).toEqual([paid.endpoint, 'wrong_version']);
    const [, nobody] = await ask({ version: '^2', budget_ceiling_usd: 0.1 });
    expect([nobody.chosen, verdictOf(nobody, paid)]).toEqual([null, 'over_ceiling']);
  });

  test('knows what the budgets of the day leave', async () => {
    const { headers } = await aLimitedProject(api, 0.3);
    const [, before] = await ask({ version: '^2' }, headers);
    expect(before.chosen).toBe(paid.endpoint);
    const spent = await execOn(api, 'concat', { headers, body: { input: {}, version: '^2' } });
    expect(spent.status).toBe(200);
    const [, decision] = await ask({ version: '^2' }, headers);
    expect([decision.chosen, verdictOf(decision, paid)]).toEqual([null, 'over_budget']);
  });

  test('of a name that was never registered is 404 with the nearest name', async () => {
    const [status, problem] = await readJson(api.call('/v1/route', { body: { capability: 'conact' } }));
    expect([status, problem.errors?.[0]]).toMatchObject([
      404,
      { pointer: '/capability', suggestion: 'did you mean "concat"?' },
    ]);
  });
});

describe('a stored decision', () => {
  const called = async () => (await execOn(api, 'concat', { body: { input: {} } })).body.routing;

  test('is shown with what it cost, and is the same when it is made again', async () => {
    const routing = await called();
    const [status, detail] = await read(routing?.decision_id);
    expect([status, detail]).toMatchObject([
      200,
      {
        capability: 'concat',
        run_id: null,
        step_id: null,
        chosen: paid.endpoint,
        reserved_usd: 0.2,
        settled_usd: 0.2,
        replay: { chosen: paid.endpoint, same: true },
      },
    ]);
    expect(detail.candidates).toEqual(routing?.candidates);
  });

  test('without what it was made from cannot be made again', async () => {
    const routing = await called();
    const attempt_id = String(routing?.decision_id).replace('dec_', 'att_');
    await api.db('attempt_choice').where({ attempt_id }).update({ inputs: null });
    const [, detail] = await read(routing?.decision_id);
    expect([detail.inputs, detail.replay]).toEqual([{}, { chosen: null, same: false }]);
  });

  test('that is no longer kept is 404, and its call is still listed', async () => {
    const routing = await called();
    const attempt_id = String(routing?.decision_id).replace('dec_', 'att_');
    await api.db('attempt_choice').where({ attempt_id }).delete();
    const [status, problem] = await read(routing?.decision_id);
    expect([status, problem]).toMatchObject([404, { detail: expect.stringContaining('no longer kept') }]);
    const [, { items }] = await readJson<{ items: DecisionListed[] }>(api.call('/v1/decisions'));
    const listed = items.find(({ decision_id }) => decision_id === routing?.decision_id);
    expect(listed).toMatchObject({ chosen: paid.endpoint, inputs: {} });
  });

  test('of another project is 404', async () => {
    const routing = await called();
    const { apiKey } = await api.createProject('elsewhere');
    const [status] = await read(routing?.decision_id, { authorization: `Bearer ${apiKey}` });
    expect(status).toBe(404);
  });

  test('needs capability:read', async () => {
    const key = await api.createKey({ scopes: ['capability:call'] });
    const headers = { authorization: `Bearer ${key}` };
    expect([(await read('dec_x', headers))[0], (await ask({}, headers))[0]]).toEqual([403, 403]);
  });
});
