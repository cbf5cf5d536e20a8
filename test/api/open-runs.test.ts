import type { Limits } from '@capstan/core/contracts/request-limits';
import type { Run } from '@capstan/core/contracts/run';
import type { BulkAnswer } from '@capstan/core/contracts/run-control';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { finishRun } from '../../src/db/run/run.ts';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import { anInstance } from '../support/factories.ts';

const most = 5;
let api: TestApi;
beforeAll(async () => {
  api = await startTestApi({ OPEN_RUNS_PER_PROJECT: most });
  await anInstance(api.db, { name: 'x' });
});
afterAll(() => api.close());

const request = { definition: { pipeline: 'p', version: '1', steps: [{ id: 'a', capability: 'x' }] } };

/** In a project of its own. */
async function aCaller(name: string) {
  const { apiKey } = await api.createProject(name);
  const call = (path: string, body: object, headers: Record<string, string> = {}) =>
    api.call(path, { body, headers: { authorization: `Bearer ${apiKey}`, ...headers } });
  return {
    call,
    submit: (headers?: Record<string, string>) => readJson<Run>(call('/v1/runs', request, headers)),
    bulk: async (count: number) => {
      const [, { items }] = await readJson<BulkAnswer>(
        call('/v1/runs/bulk', { runs: Array.from({ length: count }, () => request) }),
      );
      return items;
    },
  };
}

function end(run_id: string) {
  return finishRun(api.db, { run_id, state: 'failed', output: null, error: null, step_ids: [] });
}

test('beyond what a project may have open a run is refused, until another one has ended', async () => {
  const { submit, call } = await aCaller('full');
  const [[, first]] = await Promise.all([submit(), submit(), submit()]);
  await submit({ 'idempotency-key': 'fourth' });
  await submit();
  const refused = {
    code: 'open_runs_limit',
    detail: `the project has ${most} open runs; OPEN_RUNS_PER_PROJECT allows ${most}`,
  };
  expect(await submit()).toEqual([429, expect.objectContaining(refused)]);
  expect((await call('/v1/runs', request)).headers.get('retry-after')).toBe('30');
  expect(await submit({ 'idempotency-key': 'sixth' })).toEqual([429, expect.objectContaining(refused)]);
  expect((await submit({ 'idempotency-key': 'fourth' }))[0]).toBe(202); // it was accepted before
  expect((await (await aCaller('other')).submit())[0]).toBe(202);
  await end(first.run_id);
  const again = () => readJson(call(`/v1/runs/${first.run_id}/rerun`, {}));
  expect((await again())[0]).toBe(202);
  expect(await again()).toEqual([429, expect.objectContaining(refused)]);
});

test('a refused run leaves nothing behind', async () => {
  const { submit, bulk } = await aCaller('clean');
  await bulk(most);
  const count = async () => Number((await api.db('job').count('* as n').first())?.n);
  const before = await count();
  await submit();
  await bulk(3);
  expect(await count()).toBe(before);
});

test('of many at once the first are accepted, also where several requests arrive together', async () => {
  const { bulk, submit } = await aCaller('many');
  await submit();
  const statuses = (await bulk(most + 1)).map(({ status }) => status);
  expect(statuses).toEqual([202, 202, 202, 202, 429, 429]);
  const other = await aCaller('racing');
  const both = await Promise.all([other.bulk(most), other.bulk(most), other.bulk(most)]);
  expect(both.flat().filter(({ status }) => status === 202)).toHaveLength(most);
});

test('the limit is shown', async () => {
  const [, limits] = await readJson<Limits>(api.call('/v1/limits'));
  expect(limits).toMatchObject({ open_runs: most });
});
