import type { CacheEntry, CacheSummary } from '@capstan/core/contracts/cache';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { storeResult } from '../../src/db/attempt/cached-result.ts';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import { aClaim, anEnd, anInstance, aRun, claimAttempt, settleAttempt } from '../support/factories.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api?.close());

let made = 0;

/** A run whose step has a result that is kept. */
async function aResult(capability = 'thumbnail', projectId = api.projectId): Promise<string> {
  made += 1;
  const run = await aRun(api.db, { project_id: projectId });
  const instance = await anInstance(api.db, { name: capability });
  const claim = aClaim(run, instance, { capability, known_failures: [] });
  await claimAttempt(api.db, claim);
  await settleAttempt(api.db, anEnd(claim));
  const key = made.toString(16).padStart(64, '0');
  await storeResult(api.db, {
    project_id: projectId,
    step: { run_id: run.run_id, step_id: 'a', item: 0, revision: 0 },
    pipeline: 'trailer',
    capability,
    ttl_ms: 60_000,
    led_key: key,
    key,
    attempt_id: claim.attempt_id,
    places: { sources: {}, targets: {} },
    files: { 'media://job/a': 'sha' },
  });
  return key;
}

interface Page {
  readonly items: readonly CacheEntry[];
  readonly next_cursor: string | null;
}

const list = (query = '', headers = {}) => readJson<Page>(api.call(`/v1/cache${query}`, { headers }));
const remove = (query = '') =>
  readJson<{ removed: number }>(api.call(`/v1/cache${query}`, { method: 'DELETE' }));

it('lists what is kept page by page, newest first, and nothing of another project', async () => {
  const other = await api.createProject('other');
  await aResult('thumbnail', other.projectId);
  const keys = [await aResult(), await aResult('concat'), await aResult()];
  const [, first] = await list('?limit=2');
  expect(first.items.map(({ key }) => key)).toEqual([keys[2], keys[1]]);
  expect(first.items[0]).toMatchObject({
    capability: 'thumbnail',
    pipeline: 'trailer',
    step_id: 'a',
    cost_usd: 0,
    files: 1,
  });
  const [, second] = await list(`?limit=2&cursor=${first.next_cursor}`);
  expect([second.items.map(({ key }) => key), second.next_cursor]).toEqual([[keys[0]], null]);
  const [, some] = await list('?capability=concat');
  expect(some.items.map(({ key }) => key)).toEqual([keys[1]]);
  expect((await list('?cursor=bm9uZQ'))[0]).toBe(422);
});

it('removes one, those of a capability, and all, of the own project alone', async () => {
  await remove();
  const key = await aResult();
  await aResult('concat');
  await aResult('concat');
  await aResult();
  expect(await remove(`?key=${key}`)).toEqual([200, { removed: 1 }]);
  expect(await remove(`?key=${key}`)).toEqual([200, { removed: 0 }]);
  expect(await remove('?capability=concat')).toEqual([200, { removed: 2 }]);
  expect(await remove()).toEqual([200, { removed: 1 }]);
  const { rows } = await api.db.raw('select count(*)::int as left from cached_result');
  expect(rows).toEqual([{ left: 1 }]);
});

it('asks for the scopes of runs', async () => {
  const key = await api.createKey({ scopes: ['run:read'], projects: [api.projectId] });
  const headers = { authorization: `Bearer ${key}` };
  expect((await list('', headers))[0]).toBe(200);
  expect((await api.call('/v1/cache', { method: 'DELETE', headers })).status).toBe(403);
});

it('counts what each capability has in the cache of the own project, with its hits', async () => {
  await remove();
  await aResult('thumbnail', (await api.createProject('counted elsewhere')).projectId);
  await aResult('concat');
  await aResult('concat');
  await aResult('sized');
  await api.db.raw(
    `insert into cached_answer (project_id, key, capability, attempt_id, instance_id, endpoint, cost_nano, output,
       stored_at, expires_at)
     select project_id, key, 'sized', attempt_id, 'i', 'http://x', 0, '{"a": "bcd"}', now(), expires_at
     from cached_result where project_id = ?`,
    [api.projectId],
  );
  await api.db.raw(
    `update attempt set state = 'cached', saved_nano = 2500000, cached_from = '{}' where project_id = ? and capability = 'sized'`,
    [api.projectId],
  );
  const [status, { items }] = await readJson<CacheSummary>(api.call('/v1/cache/summary'));
  expect(status).toBe(200);
  expect(items).toMatchObject([
    { capability: 'concat', results: 2, answers: 0, answer_bytes: 0, hits: 0, saved_usd: 0 },
    { capability: 'sized', results: 1, answers: 3, hits: 1, saved_usd: 0.0025 },
  ]);
  expect(items[1]?.answer_bytes).toBeGreaterThan(3 * 12);
  expect(await remove('?capability=sized')).toEqual([200, { removed: 4 }]);
  const [, left] = await readJson<CacheSummary>(api.call('/v1/cache/summary'));
  expect(left.items).toMatchObject([
    { capability: 'concat', results: 2 },
    { capability: 'sized', results: 0, answers: 0, hits: 1 },
  ]);
});
