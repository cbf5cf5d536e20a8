/** A queued run shows the reason of its wait: its turn, Temporal, or a worker. */

import type { Run, RunQueue, RunSummary } from '@capstan/core/contracts/run';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { finishRun } from '../../src/db/run/run.ts';
import { admitRuns } from '../../src/db/run/run-admission.ts';
import { noMaintenance, readJson, startTestApi, type TestApi } from '../support/api.ts';
import { anInstance } from '../support/factories.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
beforeAll(async () => {
  // No maintenance: it would give waiting runs their turn, and mark starts again.
  api = await startTestApi(noMaintenance);
  await anInstance(api.db, { name: 'x' });
});
afterAll(() => api.close());

/** A project of its own, with runs of which `limit` with the same key may be open. */
async function aCaller(name: string, limit: number) {
  const { apiKey, projectId: project_id } = await api.createProject(name);
  const headers = { authorization: `Bearer ${apiKey}` };
  const definition = {
    pipeline: 'p',
    version: `${limit}`,
    concurrency: { key: '{{ job.box }}', limit },
    steps: [{ id: 'a', capability: 'x' }],
  };
  const queueOf = async (id: string): Promise<RunQueue | undefined> =>
    (await readJson<Run>(api.call(`/v1/runs/${id}`, { headers })))[1].queue;
  return {
    project_id,
    submit: async (box: string | number): Promise<string> => {
      const body = { definition, job: { box } };
      return (await readJson<Run>(api.call('/v1/runs', { body, headers })))[1].run_id;
    },
    cancel: (id: string) => api.call(`/v1/runs/${id}/cancel`, { body: {}, headers }),
    queueOf,
    listed: async () => {
      const [, { items }] = await readJson<{ items: RunSummary[] }>(api.call('/v1/runs', { headers }));
      return Object.fromEntries(items.map(({ run_id, queue }) => [run_id, queue]));
    },
  };
}

function end(run_id: string) {
  return finishRun(api.db, { run_id, state: 'failed', output: null, error: null, step_ids: [] });
}

test('a queued run shows its turn: the key, its place, and the runs that have it', async () => {
  const { submit, queueOf, listed, cancel, project_id } = await aCaller('turns', 1);
  await (await aCaller('other', 1)).submit('gpu'); // has no part in it
  const [holder, second, third] = [await submit('gpu'), await submit('gpu'), await submit('gpu')];
  const elsewhere = await submit(7);
  const turn = { reason: 'concurrency', key: 'gpu', limit: 1, holders: [holder] };
  expect(await queueOf(second)).toEqual({ ...turn, place: 1 });
  expect(await queueOf(third)).toEqual({ ...turn, place: 2 });
  const all = await listed();
  expect([all[second], all[third]]).toEqual([
    { ...turn, place: 1 },
    { ...turn, place: 2 },
  ]);
  for (const id of [holder, elsewhere]) expect(all[id]?.reason).toMatch(/^(temporal|worker)$/);
  await cancel(second);
  expect(await queueOf(second)).toBeUndefined();
  expect(await queueOf(third)).toEqual({ ...turn, place: 1 });
  await end(holder);
  expect(await queueOf(third)).toEqual({ ...turn, place: 1, holders: [] });
  await admitRuns(api.db, { project_id, concurrency_key: 'gpu' }, 10);
  expect((await queueOf(third))?.reason).toMatch(/^(temporal|worker)$/);
});

test('a queued run shows its turn among many: three of the holders, the oldest first', async () => {
  const { submit, queueOf } = await aCaller('many', 4);
  const holders = [];
  for (let n = 0; n < 4; n++) holders.push(await submit(7));
  const next = await submit(7);
  const turn = { reason: 'concurrency', key: '7', limit: 4, place: 1, holders: holders.slice(0, 3) };
  expect(await queueOf(next)).toEqual(turn);
});

test('Temporal, until it accepts the start; then a worker, until one has begun', async () => {
  const { submit, queueOf } = await aCaller('starts', 1);
  const run_id = await submit('a');
  const write = (row: object) => api.db('run').where({ run_id }).update(row);
  await waitFor('the mark of its start', async () => (await queueOf(run_id))?.reason === 'worker');
  await write({ start_delivered_at: null });
  expect(await queueOf(run_id)).toEqual({ reason: 'temporal' });
  await write({ start_delivered_at: api.db.fn.now() });
  expect(await queueOf(run_id)).toEqual({ reason: 'worker' });
  await write({ state: 'running', started_at: api.db.fn.now() });
  expect(await queueOf(run_id)).toBeUndefined();
});
