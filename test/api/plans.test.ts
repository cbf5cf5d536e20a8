import type { Decision } from '@capstan/core/contracts/decision';
import type { Plan } from '@capstan/core/contracts/plan';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import { execOn, registerInstance } from '../support/direct-calls.ts';
import type { Instance } from '../support/fleet.ts';

let api: TestApi;
let instances: Instance[];
beforeAll(async () => {
  api = await startTestApi();
  const cost_model = { type: 'per_call', rate_usd: 0.2 };
  instances = [
    await registerInstance(api, { name: 'concat' }),
    await registerInstance(api, { name: 'cover', cost_model, tags: ['big'] }),
    await registerInstance(api, { name: 'cover', cost_model: { type: 'per_call', rate_usd: 0.1 }, tags: [] }),
  ];
});
afterAll(async () => {
  await Promise.all(instances.map((instance) => instance.stop()));
  await api.close();
});

const steps = [
  { id: 'join', capability: 'concat', input: { clips: '{{ job.clips }}' } },
  { id: 'cover', capability: 'cover', input: { video: '{{ steps.join.output.clips ?? null }}' } },
  { id: 'big', capability: 'cover', tags: ['big'], when: 'job.wants_big' },
];
const definition = { pipeline: 'trailer', version: '1', steps };
const job = { clips: [1, 2], wants_big: false };

function planStored(body?: object, headers = {}) {
  return readJson<Plan>(api.call('/v1/pipelines/trailer/plan', { method: 'POST', body, headers }));
}
function planBody(body: object) {
  return readJson<Plan>(api.call('/v1/plan', { body }));
}

describe('a plan', () => {
  test('is the same for a stored pipeline and for its definition', async () => {
    await api.call('/v1/pipelines', { body: definition });
    const [status, stored] = await planStored({ job });
    expect([status, await planBody({ definition, job })]).toEqual([200, [200, stored]]);
    expect((await planStored())[1].steps.map(({ happens }) => happens)).toEqual(['yes', 'yes', 'unknown']);
    expect((await planStored({ alias: 'latest', job }))[1]).toEqual(stored);
  });

  test('follows values that are set from the job, and shows that they cost nothing', async () => {
    const shaped = {
      pipeline: 'shaped',
      version: '1',
      steps: [
        { id: 'long', set: { clips: '{{ job.clips | where("ms" > 1) }}' } },
        { id: 'few', set: { paths: '{{ steps.long.output.clips | map("path") }}' } },
        {
          id: 'each',
          capability: 'cover',
          tags: [],
          for_each: { items: '{{ steps.few.output.paths }}' },
          input: { video: '{{ item }}' },
        },
      ],
    };
    const clips = [1, 2, 3].map((ms) => ({ ms, path: `${ms}.mp4` }));
    const [, plan] = await planBody({ definition: shaped, job: { clips } });
    expect(plan.steps).toMatchObject([
      { id: 'long', set: 'clips', happens: 'yes', chosen: null, cost_usd: { worst: 0 }, duration_ms: 0 },
      { id: 'few', set: 'paths', cost_usd: { min: 0, expected: 0, worst: 0 } },
      { id: 'each', items: 2 },
    ]);
    expect(plan.cost_usd.expected).toBeCloseTo(0.2, 9);
    const [, unknown] = await planBody({ definition: shaped });
    expect(unknown.steps[2]).toMatchObject({ id: 'each', items: null });
  });

  test('chooses what the router would, and what a call is then given', async () => {
    const [, { steps: planned }] = await planBody({ definition, job });
    for (const { capability = '', chosen, candidates } of planned.slice(0, 2)) {
      const [, decision] = await readJson<Decision>(api.call('/v1/route', { body: { capability } }));
      expect({ chosen, candidates }).toEqual({ chosen: decision.chosen, candidates: decision.candidates });
      const { body } = await execOn(api, capability, { body: { input: {} } });
      expect(body.routing?.chosen).toBe(chosen);
    }
  });

  test('makes no call and stores nothing', async () => {
    const seen = instances.map(({ execs }) => execs.length);
    const tables = ['attempt', 'run', 'job', 'definition'];
    const rows = () => Promise.all(tables.map((table) => api.db(table).count('* as rows').first()));
    const before = await rows();
    await planBody({ definition: { ...definition, version: '2' }, job, budget_ceiling_usd: 1 });
    expect([instances.map(({ execs }) => execs.length), await rows()]).toEqual([seen, before]);
  });

  test('of a job that does not fit, a broken definition or an unknown version is refused', async () => {
    const job_schema = { type: 'object', required: ['clips'] };
    const [badJob, { code }] = await readJson(
      api.call('/v1/plan', { body: { definition: { ...definition, job_schema }, job: {} } }),
    );
    expect([badJob, code]).toEqual([422, 'job_invalid']);
    const broken = { ...definition, steps: [{ id: 'a', capability: 'concat', depends_on: ['b'] }] };
    const [status, problem] = await readJson(api.call('/v1/plan', { body: { definition: broken } }));
    expect([status, problem.code]).toEqual([422, 'definition_invalid']);
    expect((await planStored({ version: 'none' }))[0]).toBe(404);
    expect((await planStored({ job_id: 'job_none' }))[0]).toBe(404);
    expect((await planStored({ job, job_id: 'job_1' }))[0]).toBe(422);
  });

  test('takes the job of an id, and needs pipeline:read', async () => {
    const [, { job_id }] = await readJson<{ job_id: string }>(api.call('/v1/jobs', { body: { job } }));
    expect((await planStored({ job_id }))[1].steps[2]?.happens).toBe('no');
    const key = await api.createKey({ scopes: ['run:read'] });
    expect((await planStored({ job }, { authorization: `Bearer ${key}` }))[0]).toBe(403);
  });
});
