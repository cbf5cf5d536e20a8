/**
 * Version B has a migration that version A does not know, and a function that needs it. Processes of A are replaced by
 * such of B, one by one, and then by such of A again, while runs are submitted and carried out: all start, every run
 * completes, and the function of B stays in force.
 */
import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Run } from '@capstan/core/contracts/run';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { findDrift } from '../../src/db/money/budget-drift.ts';
import { type AddedWorker, type Capstan, startCapstan } from '../support/capstan.ts';
import { findCompiled } from '../support/compiled.ts';
import { answer, type Instance, startInstance } from '../support/fleet.ts';
import { waitFor } from '../support/wait.ts';

/** `npm run faults -- migrations` asks for more. */
const runs = Number(process.env.FAULT_RUNS ?? 40);
/** Between two submissions: a load that leaves the processors to what is replaced. */
const paceMs = 100;
let folder: string;
let capstan: Capstan;
let instance: Instance;
let db: Db;

const migration = (steps: string) => `{
  name: '0002-of-version-b',
  isPiecewise: true,
  up: async (db) => {
    const { addIndex, changeTables, fillInBatches } = await import(${JSON.stringify(steps)});
    await changeTables(db, ["alter table step add column if not exists note text"]);
    await addIndex(db, { name: 'step_noted', on: "on step (note) where note is not null" });
    await fillInBatches(db, "update step set note = state where ctid in (select ctid from step where note is null and finished_at is not null limit ?)", 50);
  },
}`;

/** It notes each step that it begins, in the column of the migration. */
function beginStepsOfB(text: string): string {
  return text
    .replace('-- schema 1\n', '-- schema 2\n')
    .replace('state, started_at)', 'state, started_at, note)')
    .replace("'running', clock_timestamp() from", "'running', clock_timestamp(), 'begun' from");
}

async function change(file: string, work: (text: string) => string): Promise<void> {
  const text = await readFile(file, 'utf8');
  const changed = work(text);
  expect(changed).not.toBe(text);
  await writeFile(file, changed);
}

/** The package of this checkout, but for one migration and one function. */
async function makeVersionB(): Promise<string> {
  const original = inject('packageFolder');
  await cp(join(original, 'dist'), join(folder, 'dist'), { recursive: true });
  for (const name of await readdir(original)) {
    if (name !== 'dist') await symlink(join(original, name), join(folder, name));
  }
  const steps = findCompiled(folder, 'src/db/migrations/gentle-steps.ts');
  for (const program of ['src/server.ts', 'src/worker.ts']) {
    await change(findCompiled(folder, program), (text) =>
      text
        .replace(
          /migrations = \[(runFile[^\]]*)\]/,
          (_, known) => `migrations = [${known}, ${migration(steps)}]`,
        )
        .replaceAll(pathToFileURL(original).href, pathToFileURL(folder).href),
    );
  }
  await change(join(folder, 'dist/src/db/sql/runs.sql'), beginStepsOfB);
  return folder;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'capstan-version-b-'));
  capstan = await startCapstan({ HEARTBEAT_TIMEOUT_MS: '3000', LEASE_MS: '5000', RATE_LIMITS: 'off' });
  db = connectDatabase(capstan.databaseUrl, 2);
  instance = await startInstance(capstan, {
    name: 'echo',
    max_concurrency: 100,
    cost_model: { type: 'per_call', rate_usd: 0.001 },
  });
  instance.handle = (exec, response) =>
    void setTimeout(() => answer(response, 200, { ok: true, output: exec.input }), 50);
});
afterAll(async () => {
  await instance?.stop();
  await db?.destroy();
  await capstan?.stop();
  await rm(folder, { recursive: true, force: true });
});

const steps = [
  { id: 'a', capability: 'echo', input: { id: 'a' } },
  { id: 'pause', wait: '1s', depends_on: ['a'] },
  { id: 'b', capability: 'echo', depends_on: ['pause'], input: { id: 'b' } },
];

/** As a client that tries again until it is answered. */
async function submit(n: number): Promise<string> {
  const definition = { pipeline: 'rolling', version: '1', steps };
  return waitFor(
    `submission ${n}`,
    async () => {
      const body = { definition, job: { n } };
      const headers = { 'idempotency-key': `rolling-${n}` };
      const sent = await capstan.request<Run>('POST', '/v1/runs', body, headers).catch(() => undefined);
      return sent?.status === 202 ? sent.body.run_id : undefined;
    },
    60_000,
  );
}

async function replace(worker: AddedWorker, packageFolder?: string): Promise<AddedWorker> {
  const next = await capstan.addWorker(packageFolder);
  await worker.kill('SIGTERM');
  await capstan.killServer('SIGTERM');
  await capstan.startServer({}, packageFolder);
  return next;
}

async function appliedMigrations(): Promise<string[]> {
  return db('schema_migration').orderBy('id').pluck('name');
}

async function functionsInForce(): Promise<unknown[]> {
  return db('schema_function').orderBy('name').select();
}

async function now(): Promise<Date> {
  const { rows } = await db.raw<{ rows: [{ at: Date }] }>('select clock_timestamp() as at');
  return rows[0].at;
}

/** The notes of calls that have begun since. */
async function notesSince(at: Date): Promise<unknown[]> {
  return db('step').whereIn('step_id', ['a', 'b']).where('started_at', '>', at).distinct().pluck('note');
}

test('from A to B and back under load: every process starts, every run completes', {
  timeout: 300_000,
}, async () => {
  const b = await makeVersionB();
  let worker = await capstan.addWorker();
  await capstan.killWorker('SIGTERM');
  let isOver = false;
  const ids: string[] = [];
  const load = (async () => {
    for (let n = 0; n < runs || !isOver; n++) {
      const next = performance.now() + paceMs;
      ids.push(await submit(n));
      await waitFor('the time of the next', () => performance.now() >= next);
    }
  })();
  const before = await functionsInForce();
  const third = Math.floor(runs / 4);
  await waitFor('the first runs', () => ids.length >= third, 120_000);
  worker = await replace(worker, b);
  const applied = await appliedMigrations();
  expect(applied.at(-1)).toBe('0002-of-version-b');
  const functions = await functionsInForce();
  expect(functions).not.toEqual(before);
  const since = await now();
  await waitFor('more runs', () => ids.length >= 2 * third, 120_000);
  worker = await replace(worker);
  expect(await appliedMigrations()).toEqual(applied);
  expect(await functionsInForce()).toEqual(functions);
  expect(await notesSince(since)).toEqual(['begun']);
  const back = await now();
  await waitFor('a step that A begins', async () => (await notesSince(back)).length > 0);
  isOver = true;
  await load;
  expect(ids.length).toBeGreaterThanOrEqual(runs);
  for (const id of ids) expect(await capstan.ended(id, 120_000)).toMatchObject({ state: 'succeeded' });
  const { rows } = await db.raw('select indisvalid from pg_index where indexrelid = to_regclass(?)', [
    'step_noted',
  ]);
  expect(rows).toEqual([{ indisvalid: true }]);
  expect(await notesSince(since)).toEqual(['begun']);
  await waitFor('no drift', async () => (await findDrift(db)).length === 0);
});
