import type { Json } from '@capstan/core/contracts/primitives';
import type { Run } from '@capstan/core/contracts/run';
import type { RunStep } from '@capstan/core/contracts/run-step';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { listRunSteps } from '../../src/db/step/step.ts';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import { anInstance } from '../support/factories.ts';

let api: TestApi;
let run: Run;
const all = 10_000;
beforeAll(async () => {
  api = await startTestApi();
  await anInstance(api.db, { name: 'x' });
  const steps = [
    { id: 'each', capability: 'x', for_each: { items: '{{ job.list }}' }, input: { n: '{{ item.n }}' } },
    { id: 'other', wait: '1s' },
  ];
  const job = { list: [{ n: 'one' }, { n: 'two' }] };
  const body = { definition: { pipeline: 'many', version: '1', steps }, job };
  [, run] = await readJson<Run>(api.call('/v1/runs', { body }));
  await api.db.raw(
    `insert into step (run_id, step_id, item, state, awaiting, items)
     values (?, 'each', 0, 'running', null, ?)`,
    [run.run_id, all + 5],
  );
  await api.db.raw(
    `insert into step (run_id, step_id, item, state, awaiting, output)
     select ?, 'each', n, case when n % 10 = 0 then 'waiting' else 'succeeded' end,
       case when n % 10 = 0 then 'budget' end, to_json(n) from generate_series(1, ?) n`,
    [run.run_id, all],
  );
  await api.db('run').where({ run_id: run.run_id }).update({ state: 'running', started_at: new Date() });
});
afterAll(() => api.close());

function list(query: string) {
  return readJson<{ items: RunStep[]; next_cursor: string | null }>(
    api.call(`/v1/runs/${run.run_id}/steps/each/items${query}`),
  );
}

test('a run counts the items of its steps, and shows the reasons for which some wait', async () => {
  const [, shown] = await readJson<Run>(api.call(`/v1/runs/${run.run_id}`));
  expect(shown.awaiting).toEqual(['budget']);
  expect(shown.steps).toMatchObject([
    { id: 'each', state: 'running', items: { succeeded: 9_000, waiting: 1_000, pending: 5 } },
    { id: 'other', wait: '1s', state: 'pending' },
  ]);
  expect(shown.steps).toHaveLength(2);
});

test('the items of a step are counted where they are: one row of a step is read', async () => {
  const read: number[] = [];
  const note = ({ rows }: { readonly rows: readonly unknown[] }): void => void read.push(rows.length);
  api.db.on('query-response', note);
  await listRunSteps(api.db, run.run_id);
  api.db.off('query-response', note);
  expect(read).toEqual([1]);
});

test('items are listed in order, page by page, and by state', async () => {
  const seen: number[] = [];
  let cursor = '';
  for (let page = 0; page < 3; page++) {
    const [, { items, next_cursor }] = await list(`?state=waiting&limit=2${cursor}`);
    seen.push(...items.map(({ item = 0 }) => item));
    cursor = `&cursor=${next_cursor}`;
  }
  expect(seen).toEqual([10, 20, 30, 40, 50, 60]);
  const [, last] = await list(`?cursor=${Buffer.from(String(all - 1)).toString('base64url')}`);
  expect(last).toMatchObject({
    items: [{ id: 'each', item: all, state: 'waiting', awaiting: 'budget' }],
    next_cursor: null,
  });
});

test('items are listed with what they yielded, but for what is too large for a list', async () => {
  const large = JSON.stringify('x'.repeat(70_000));
  await api.db('step').where({ run_id: run.run_id, step_id: 'each', item: 2 }).update({ output: large });
  const [, { items }] = await list('?limit=3');
  await api.db('step').where({ run_id: run.run_id, step_id: 'each', item: 2 }).update({ output: '2' });
  expect(items.map((item) => ('output' in item ? item.output : 'none'))).toEqual([1, 'none', 3]);
  const [, brief] = await list('?limit=3&output=none');
  expect(brief.items.map((item) => 'output' in item)).toEqual([false, false, false]);
});

test('an item has a page of its own, with the input that its place in the list gives', async () => {
  const [, item] = await readJson(api.call(`/v1/runs/${run.run_id}/steps/each?item=2`));
  expect(item).toMatchObject({ id: 'each', item: 2, state: 'succeeded', input: { n: 'two' }, output: 2 });
  const [, whole] = await readJson<RunStep>(api.call(`/v1/runs/${run.run_id}/steps/each`));
  expect([whole.item, 'input' in whole]).toEqual([undefined, false]);
});

function showWhole(query: string) {
  type Whole = { output?: Json[]; next_cursor?: string | null };
  return readJson<Whole>(api.call(`/v1/runs/${run.run_id}/steps/each${query}`));
}

test('the page of a step with items shows what they have yielded, in their order, page by page', async () => {
  await api.db('step').where({ run_id: run.run_id, step_id: 'each', item: 4 }).update({ output: null });
  const [, { output, next_cursor }] = await showWhole('?limit=6');
  const [, next] = await showWhole(`?limit=3&cursor=${next_cursor}`);
  await api.db('step').where({ run_id: run.run_id, step_id: 'each', item: 4 }).update({ output: '4' });
  expect([output, next.output]).toEqual([
    [1, 2, 3, null, 5, 6],
    [7, 8, 9],
  ]);
  const [, last] = await showWhole(`?cursor=${Buffer.from(String(all - 1)).toString('base64url')}`);
  expect(last).toMatchObject({ output: [all, null, null, null, null, null], next_cursor: null });
  expect((await showWhole('?cursor=x'))[0]).toBe(422);
  const [, other] = await readJson<object>(api.call(`/v1/runs/${run.run_id}/steps/other`));
  expect('output' in other || 'next_cursor' in other).toBe(false);
});

test('a page of items ends with the item that brings it to 1 MiB, and leaves none out', async () => {
  const large = 'x'.repeat(700_000);
  const update = (item: number, output: Json) =>
    api
      .db('step')
      .where({ run_id: run.run_id, step_id: 'each', item })
      .update({ output: JSON.stringify(output) });
  await Promise.all([2, 3, 4].map((item) => update(item, large)));
  const sizes: number[] = [];
  const items: Json[] = [];
  for (let cursor = ''; items.length < 6; ) {
    const [, { output = [], next_cursor }] = await showWhole(`?limit=6${cursor}`);
    sizes.push(output.length);
    items.push(...output);
    cursor = `&cursor=${next_cursor}`;
  }
  await Promise.all([2, 3, 4].map((item) => update(item, item)));
  expect(sizes).toEqual([3, 6]);
  expect(items.slice(0, 6)).toEqual([1, large, large, large, 5, 6]);
});

test.each([
  ['/steps/each?item=10001', 422],
  ['/steps/each?item=-1', 422],
  ['/steps/other?item=1', 404],
  ['/steps/none/items', 404],
  ['/steps/each/items?cursor=x', 422],
  ['/steps/each/items?state=gone', 422],
])('%s answers %d', async (path, status) => {
  expect((await api.call(`/v1/runs/${run.run_id}${path}`)).status).toBe(status);
});
