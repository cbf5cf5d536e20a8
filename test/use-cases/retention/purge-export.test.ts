import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { createMediaStore } from '@capstan/media-store/create-media-store';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { listParts, partsBetween } from '../../../src/db/partitions.ts';
import { newId } from '../../../src/parts/ids.ts';
import { createMediaLibrary, type MediaLibrary } from '../../../src/parts/media/media-library.ts';
import { createPurgeExport } from '../../../src/use-cases/retention/deletion-pass.ts';
import { type PurgeOptions, purge } from '../../../src/use-cases/retention/purge.ts';
import { useDatabase } from '../../support/database.ts';
import {
  aCallingKey,
  aClaim,
  anEnd,
  anInstance,
  aProject,
  aRun,
  claimAttempt,
  settleAttempt,
} from '../../support/factories.ts';

const { db } = useDatabase();
let folder: string;
let media: MediaLibrary;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'capstan-export-'));
  const store = await createMediaStore(`file://${folder}/media`);
  media = createMediaLibrary({ db, store, bytesPerProject: 0 });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const dayMs = 86_400_000;
/** Rows are made now, so it is later when they are deleted. */
const later = new Date(Date.now() + 100 * dayMs);
const many = 1_100;

function purgeLater(options: Partial<PurgeOptions> = {}) {
  const retention = { runDays: 90, choiceDays: 30, bookDays: 30 };
  return purge({ db, media }, { retention, now: later, ...options });
}

const tables = [
  ...['run', 'step', 'event', 'attempt', 'attempt_choice', 'escalation', 'review', 'budget'],
  ...['cached_result', 'step_revision', 'job', 'media_object', 'ledger_entry', 'audit'],
];

/** A time in the JSON of Postgres, in the form of the API. */
function toInstants(line: string): string {
  return line.replaceAll(
    /"(\d{4}-\d\d-\d\dT[\d:.]+\+00:00)"/g,
    (_, time) => `"${new Date(time).toISOString()}"`,
  );
}

/** All rows, as an export writes them. */
async function readLines(): Promise<string[]> {
  const { rows } = await db.raw<{ rows: { line: string }[] }>(
    tables
      .map(
        (table) =>
          `select json_build_object('table', '${table}', 'row', row_to_json(t))::text as line from ${table} t`,
      )
      .join(' union all '),
  );
  return rows.map(({ line }) => toInstants(line));
}

function readExport(into: string): string[] {
  return readdirSync(into).flatMap((name) => readFileSync(join(into, name), 'utf8').trim().split('\n'));
}

type Instance = Awaited<ReturnType<typeof anInstance>>;

/** Calls without an owner's run: one of them direct, many like it, one of a ladder of its own. */
async function makeLooseCalls(project_id: string, instance: Instance): Promise<void> {
  const escalation_id = newId('escalation');
  await db('escalation').insert({
    escalation_id,
    project_id,
    job_type: 'cut',
    prompt: 'p',
    ladder: '{}',
    escalation_level: 0,
    model_spec: '{}',
    caller: aCallingKey(),
    state: 'succeeded',
    finished_at: new Date(),
  });
  for (const key of ['call_1', `${escalation_id}.1`]) {
    const claim = { ...aClaim({ run_id: '', project_id }, instance), step: null, run_id: null, key };
    await claimAttempt(db, claim);
    await settleAttempt(db, anEnd(claim));
  }
  await db.raw(
    `insert into attempt select (jsonb_populate_record(a, jsonb_build_object(
       'attempt_id', overlay(attempt_id placing lpad(n::text, 12, '0') from 29), 'key', 'call_' || n))).*
     from attempt a, generate_series(2, ?::int) n where a.key = 'call_1'`,
    [many],
  );
}

/** Two runs, of which one may go, and of both what they were chosen from: one of this week, one that lies in no week. */
async function makeRuns(project_id: string, instance: Instance): Promise<void> {
  for (const daysAgo of [91, 40]) {
    const run = await aRun(db, { project_id });
    const early = { attempt_id: `att_010000${daysAgo}-0000-7000-8000-000000000000`, step_id: 'b' };
    for (const overrides of [{}, early]) {
      const claim = aClaim(run, instance, { reserved_nano: 1_000n, ...overrides });
      await claimAttempt(db, claim);
      await settleAttempt(db, anEnd(claim, { settled_nano: 700n }));
    }
    const finished_at = new Date(later.getTime() - daysAgo * dayMs);
    await db('run').where({ run_id: run.run_id }).update({ state: 'succeeded', finished_at });
    await db.raw(
      `insert into event (run_id, type) select ?, 'step.retrying' from generate_series(1, ?::int)`,
      [run.run_id, many],
    );
    const body = Readable.from([Buffer.from('a')]);
    const path = { job_id: run.job_id, file: 'a.txt' };
    await media.put(path, body, { contentType: 'text/plain', limitBytes: 10 });
  }
}

async function makeReview(project_id: string): Promise<void> {
  const now = new Date();
  await db('review').insert({
    review_id: newId('review'),
    project_id,
    kind: 'ops',
    reason: 'r',
    state: 'resolved',
    due_at: now,
    payload: '{}',
    decision: '{}',
    decided_by: 'ann',
    decided_at: now,
    delivered_at: now,
  });
}

/** Pages of a week of choices, of a month of the ledger, and of entries that lie in no month; one of the audit log. */
async function makeBooks(project_id: string): Promise<void> {
  const now = new Date();
  const week = partsBetween('attempt_choice', now, now)[0]?.from;
  await db.raw(
    `insert into attempt_choice
     select ?::text || '-7000-8000-' || lpad(n::text, 12, '0'), '{}' from generate_series(1, ?::int) n`,
    [`${week}`, many],
  );
  for (const window of [now.toISOString().slice(0, 10), '2001-01-01'])
    await db.raw(
      `insert into ledger_entry (attempt_id, kind, project_id, capability, amount_nano, certainty, budget_window)
       select 'att_' || n, 'reserve', ?, 'concat', 9007199254740993, 'exact', ?::date
       from generate_series(1, ?::int) n`,
      [project_id, window, many],
    );
  await db('audit').insert({ project_id, actor: 'key', action: 'a', subject: 's' });
}

/** One of every kind that may go, and many where pages are read. */
async function fillTables(): Promise<void> {
  const { project_id } = await aProject(db);
  const instance = await anInstance(db, { cost_type: 'per_call', rate_usd: 1e-6, max_concurrency: 1_000 });
  await makeLooseCalls(project_id, instance);
  await makeRuns(project_id, instance);
  await makeReview(project_id);
  await makeBooks(project_id);
}

test('no row is deleted that could not be exported', async () => {
  await fillTables();
  const before = (await readLines()).sort();
  const write = () => Promise.reject(new Error('the disk is full'));
  await expect(purgeLater({ exportTo: { write } })).rejects.toThrow('the disk is full');
  expect((await readLines()).sort()).toEqual(before);
});

test('weeks and months whose export is incomplete stay', async () => {
  const count = async () => (await readLines()).filter((line) => line.includes('_choice"')).length;
  const before = await count();
  let told = 0;
  const write = async (lines: AsyncIterable<string> | Iterable<string>) => {
    for await (const _ of lines) told += 1;
  };
  const retention = { runDays: null, choiceDays: 30, bookDays: null };
  await purgeLater({ retention, exportTo: { write }, isStopping: () => told >= 1_000 });
  expect(told).toBe(1_000);
  expect(await count()).toBe(before);
});

test('no row is exported that others are reading, so that it cannot be deleted', async () => {
  const now = new Date();
  const reader = await db.transaction();
  const [week] = partsBetween('attempt_choice', now, now);
  await reader.raw('select from ?? limit 1', [week?.name ?? '']);
  const told: string[] = [];
  const write = async (lines: AsyncIterable<string> | Iterable<string>) => {
    for await (const line of lines) told.push(line);
    if (told.length > 0) throw new Error('the disk is full'); // what goes one by one
  };
  const retention = { runDays: null, choiceDays: 30, bookDays: null };
  await expect(purgeLater({ retention, exportTo: { write } }).finally(() => reader.commit())).rejects.toThrow(
    'the disk is full',
  );
  expect(told).toHaveLength(1_000);
  expect((await listParts(db, 'attempt_choice'))[0]).toEqual(week);
});

test('an export holds every row that went, and no other', async () => {
  let most = 0;
  const watch = ({ rowCount }: { rowCount?: number }, { sql }: { sql: string }) => {
    if (/^(select|fetch)/.test(sql)) most = Math.max(most, rowCount ?? 0);
  };
  const before = await readLines();
  const into = join(folder, 'export');
  db.on('query-response', watch);
  const counts = await purgeLater({ exportTo: await createPurgeExport(into) });
  db.off('query-response', watch);
  const left = new Set(await readLines());
  const gone = before.filter((line) => !left.has(line));
  expect(readExport(into).sort()).toEqual(gone.sort());
  expect(most).toBeLessThanOrEqual(1_000); // that are read at once
  const kinds = ['run', 'escalation', 'review', 'attempt_choice', 'media_object', 'ledger_entry', 'audit'];
  for (const kind of kinds) expect(gone.some((line) => line.includes(`"table" : "${kind}"`))).toBe(true);
  expect(gone.join()).toMatch(/"created_at":"[\dT:-]+\.\d{3}Z"/);
  expect(counts).toMatchObject({ run: 1, escalation: 1, review: 1, job: 1, ledger_entry: 2 * many + 8 });
});
