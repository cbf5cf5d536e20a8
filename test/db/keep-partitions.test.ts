import { expect, test } from 'vitest';
import {
  addParts,
  dropPart,
  isFree,
  listParts,
  partedTables,
  partsBetween,
} from '../../src/db/partitions.ts';
import { useDatabase } from '../support/database.ts';
import { aRun } from '../support/factories.ts';

const { db } = useDatabase();

const weekMs = 7 * 86_400_000;

/** The table that a run's events are in. */
async function placesOf(run_id: string): Promise<string[]> {
  const { rows } = await db.raw<{ rows: { place: string }[] }>(
    'select distinct tableoid::regclass::text as place from event where run_id = ?',
    [run_id],
  );
  return rows.map(({ place }) => place);
}

/** With one event. */
async function copyRun(run_id: string, copy_id: string): Promise<void> {
  await db.raw(
    `insert into run select (jsonb_populate_record(r, jsonb_build_object('run_id', ?::text))).*
     from run r where run_id = ?`,
    [copy_id, run_id],
  );
  await db('event').insert({ run_id: copy_id, type: 'run.queued' });
}

test('a migrated database has parts for now and some weeks; made again, nothing is', async () => {
  const { run_id } = await aRun(db);
  const [now] = partsBetween('event', new Date(), new Date());
  expect(await placesOf(run_id)).toEqual([now?.name]);
  expect((await listParts(db, 'event')).length).toBeGreaterThanOrEqual(5);
  expect(await addParts(db)).toBe(0);
});

async function countParts(): Promise<number> {
  const parts = await Promise.all(partedTables.map((table) => listParts(db, table)));
  return parts.flat().length;
}

test('future weeks get their parts, each once by the first of several processes', async () => {
  const later = new Date(Date.now() + 10 * weekMs);
  const before = await countParts();
  const added = await Promise.all([addParts(db, later), addParts(db, later), addParts(db, later)]);
  const names = (await listParts(db, 'attempt_choice')).map(({ name }) => name);
  expect(names).toContain(partsBetween('attempt_choice', later, later)[0]?.name);
  expect(added.reduce((sum, count) => sum + count)).toBe((await countParts()) - before);
});

test('rows from before their part was made stay in place, and are found', async () => {
  const { run_id } = await aRun(db);
  const early = new Date(Date.now() - 20 * weekMs);
  const [part] = partsBetween('event', early, early);
  const oldId = `${part?.from}-7000-8000-000000000000`;
  await copyRun(run_id, oldId);
  expect(await placesOf(oldId)).toEqual(['event_default']);
  await addParts(db, early);
  expect(await placesOf(oldId)).toEqual(['event_default']);
  expect((await listParts(db, 'event')).map(({ name }) => name)).not.toContain(part?.name);
});

test('a part that is dropped takes its rows with it, and no others', async () => {
  const { run_id } = await aRun(db);
  const far = new Date(Date.now() - 60 * weekMs);
  await addParts(db, far);
  const [part] = partsBetween('event', far, far);
  if (part === undefined) throw new Error('no part');
  const oldId = `${part.from}-7000-8000-000000000000`;
  await copyRun(run_id, oldId);
  expect(await placesOf(oldId)).toEqual([part.name]);
  await dropPart(db, part);
  expect(await placesOf(oldId)).toEqual([]);
  expect(await placesOf(run_id)).toHaveLength(1);
});

test('a part that others hold is dropped another time, and nothing waits for it longer than a moment', async () => {
  const far = new Date(Date.now() - 50 * weekMs);
  await addParts(db, far);
  const [part] = partsBetween('event', far, far);
  if (part === undefined) throw new Error('no part');
  const reader = await db.transaction();
  await reader.raw('select 1 from ?? limit 1', [part.name]);
  const asked: string[] = [];
  const note = ({ sql }: { readonly sql: string }): unknown => asked.push(sql);
  db.on('query', note);
  expect([await isFree(db, part), await dropPart(db, part)]).toEqual([false, false]);
  db.off('query', note);
  expect(asked.filter((sql) => sql.includes('lock_timeout'))).toEqual(
    Array(2).fill("set local lock_timeout = '100ms'"),
  );
  await reader.commit();
  expect([await isFree(db, part), await dropPart(db, part)]).toEqual([true, true]);
});

test('entries of the ledger refuse to be changed in every part', async () => {
  await db('ledger_entry').insert({
    attempt_id: 'att_1',
    kind: 'reserve',
    project_id: 'prj_1',
    capability: 'concat',
    amount_nano: 1,
    certainty: 'exact',
    budget_window: new Date().toISOString().slice(0, 10),
  });
  await expect(db('ledger_entry').update({ amount_nano: 2 })).rejects.toThrow(/append-only|refuse|never/i);
});
