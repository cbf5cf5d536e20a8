import { expect, test } from 'vitest';
import { purgeOld } from '../../src/db/statements.ts';
import { useDatabase } from '../support/database.ts';
import { aProject } from '../support/factories.ts';

const { db } = useDatabase();

test('a backlog goes in statements of a bounded size, and nothing that is young', async () => {
  const { project_id } = await aProject(db);
  const row = (n: number, hours: number) => ({
    project_id,
    request: 'POST /v1/runs',
    key: `k${n}`,
    body_sha256: Buffer.alloc(32),
    status: 202,
    answer: '{}',
    created_at: db.raw('now() - make_interval(hours => ?)', [hours]),
  });
  await db('idempotency').insert([25, 26, 27, 28, 29].map((hours, n) => row(n, hours)));
  await db('idempotency').insert([row(10, 23), row(11, 0)]);
  const sizes: number[] = [];
  db.on('query-response', (answer: { command?: string; rowCount?: number }) => {
    if (answer.command === 'DELETE') sizes.push(answer.rowCount ?? 0);
  });
  expect(await purgeOld(db, { table: 'idempotency', hours: 24, batch: 2 })).toBe(5);
  expect(sizes).toEqual([2, 2, 1]);
  expect(await db('idempotency').pluck('key').orderBy('key')).toEqual(['k10', 'k11']);
});
