import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { createMediaStore } from '@capstan/media-store/create-media-store';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { announceUpload } from '../../../src/db/media.ts';
import { listLedger } from '../../../src/db/money/spending.ts';
import { createMediaLibrary } from '../../../src/parts/media/media-library.ts';
import { type PurgeCtx, type PurgeOptions, purge } from '../../../src/use-cases/retention/purge.ts';
import { useDatabase } from '../../support/database.ts';
import {
  aClaim,
  anEnd,
  anInstance,
  aProject,
  aRun,
  claimAttempt,
  type RunOverrides,
  type StoredRun,
  settleAttempt,
} from '../../support/factories.ts';
import { runs } from '../../support/runs.ts';

const { db } = useDatabase();
let folder: string;
let project_id: string;
let instance: Awaited<ReturnType<typeof anInstance>>;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'capstan-purge-'));
  ({ project_id } = await aProject(db));
  instance = await anInstance(db, { cost_type: 'per_call', rate_usd: 1e-6, max_concurrency: 1_000 });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const dayMs = 86_400_000;
/** Rows are made now, so it is later when they are deleted. */
const later = new Date(Date.now() + 100 * dayMs);

async function openMedia() {
  const store = await createMediaStore(`file://${folder}/media`);
  return createMediaLibrary({ db, store, bytesPerProject: 0 });
}

async function purgeLater({ media, ...options }: Partial<PurgeOptions & Pick<PurgeCtx, 'media'>> = {}) {
  const retention = { runDays: 90, choiceDays: null, bookDays: null };
  return purge({ db, media: media ?? (await openMedia()) }, { retention, now: later, ...options });
}

/** With a paid attempt, events, a step and a budget of its own. */
async function aCharged(overrides: RunOverrides = {}): Promise<StoredRun> {
  const run = await aRun(db, { project_id, ...overrides });
  const claim = aClaim(run, instance, { reserved_nano: 1_000n });
  await claimAttempt(db, claim);
  await settleAttempt(db, anEnd(claim, { settled_nano: 700n }));
  return run;
}

/** @param daysAgo before the moment of the purge; it may be kept 90 */
async function end({ run_id }: StoredRun, daysAgo: number): Promise<void> {
  const finished_at = new Date(later.getTime() - daysAgo * dayMs);
  await db('run').where({ run_id }).update({ state: 'succeeded', finished_at });
}

const owned = ['run', 'step', 'event', 'attempt', 'cached_result', 'escalation', 'review', 'step_revision'];

/** Rows of a run, by table. */
async function rowsOf(run_id: string): Promise<string> {
  const counts = await Promise.all(owned.map((table) => db(table).where({ run_id }).count()));
  return JSON.stringify(counts.map(([row]) => Number(row?.count)));
}

/** Everything that has to do with money and no run. */
async function readMoney() {
  return {
    days: await db('budget').where('window_start', '>', '-infinity').orderBy(['scope', 'window_start']),
    ledger: await db('ledger_entry').orderBy('entry_id').pluck('entry_id'),
    booked: await db('ledger_entry').sum('amount_nano').first(),
  };
}

test('a run that ended long ago is deleted with all of its rows, and no recent one', async () => {
  const [old, young] = [await aCharged(), await aCharged()];
  await Promise.all([end(old, 91), end(young, 89)]);
  const before = { young: await rowsOf(young.run_id), money: await readMoney() };
  const counts = await purgeLater();
  expect(counts).toMatchObject({ run: 1, attempt: 1, step: 1, budget: 1, job: 1 });
  expect(await rowsOf(old.run_id)).toBe(JSON.stringify(owned.map(() => 0)));
  expect(await db('budget').where({ scope: `run:${old.run_id}` })).toEqual([]);
  expect(await rowsOf(young.run_id)).toBe(before.young);
  expect(await readMoney()).toEqual(before.money);
  expect(await purgeLater()).not.toMatchObject({ run: 1 });
});

test('a run stays as long as one that it started, which ended later', async () => {
  const parent = await aCharged();
  const origin = { parent_run_id: parent.run_id, parent_step_id: 'a', parent_item: 0 };
  const child = await aCharged(origin);
  await Promise.all([end(parent, 91), end(child, 89)]);
  const before = await Promise.all([rowsOf(parent.run_id), rowsOf(child.run_id)]);
  await purgeLater();
  expect(await Promise.all([rowsOf(parent.run_id), rowsOf(child.run_id)])).toEqual(before);
  await end(child, 91);
  expect(await purgeLater()).toMatchObject({ run: 2 });
});

test('the ledger keeps a call whose run has been deleted', async () => {
  const run = await aCharged();
  await end(run, 100);
  await purgeLater();
  const rows = await listLedger(db, project_id, { after: null, limit: 1 });
  expect(rows).toMatchObject([{ kind: 'settle', amount_nano: '700', run_id: null, endpoint: null }]);
});

test('open runs, and all that belongs to them, lose no row', async () => {
  const tree = fc.array(
    fc.record({
      /** Which of those before it has started it, or is repeated by it. */
      of: fc.nat(),
      how: fc.constantFrom('alone', 'child', 'rerun', 'reusing rerun'),
      daysAgo: fc.option(fc.constantFrom(89, 91, 100)),
    }),
    { minLength: 1, maxLength: 8 },
  );
  await fc.assert(
    fc.asyncProperty(tree, async (nodes) => {
      const runs: (StoredRun & { daysAgo: number | null; parent?: string; from?: string })[] = [];
      for (const { of, how, daysAgo } of nodes) {
        const other = how === 'alone' ? undefined : runs[of % Math.max(runs.length, 1)];
        if (other === undefined) runs.push({ ...(await aCharged()), daysAgo });
        else if (how === 'child') {
          const origin = { parent_run_id: other.run_id, parent_step_id: `s${runs.length}`, parent_item: 0 };
          const child = await aCharged({ ...origin, parent_revision: 0, depth: 1 });
          runs.push({ ...child, daysAgo, parent: other.run_id });
        } else {
          const run = await aCharged({ rerun_of: other.run_id });
          if (how === 'reusing rerun')
            await db('step').where({ run_id: run.run_id }).update({ reused_from: other.run_id });
          runs.push({ ...run, daysAgo, ...(how === 'rerun' ? {} : { from: other.run_id }) });
        }
      }
      for (const run of runs) if (run.daysAgo !== null) await end(run, run.daysAgo);
      const before = new Map(
        await Promise.all(runs.map(async (run) => [run.run_id, await rowsOf(run.run_id)] as const)),
      );
      const money = await readMoney();
      await purgeLater();
      const isThere = new Set(await db('run').pluck('run_id'));
      for (const run of runs) {
        const mustStay = run.daysAgo === null || run.daysAgo < 90;
        if (mustStay) expect(isThere).toContain(run.run_id);
        if (isThere.has(run.run_id)) {
          expect(await rowsOf(run.run_id)).toBe(before.get(run.run_id));
          // Its foundations exist as well.
          for (const needed of [run.parent, run.from])
            if (needed !== undefined) expect(isThere).toContain(needed);
        }
      }
      for (const { rerun_of } of await db('run').whereNull('finished_at').whereNotNull('rerun_of'))
        expect(isThere).toContain(rerun_of);
      expect(await readMoney()).toEqual(money);
      for (const run of runs) await db('run').where({ run_id: run.run_id }).delete();
    }),
    { numRuns: runs(4) },
  );
});

test('a run whose call is still open stays, so that what it holds is given back', async () => {
  const run = await aRun(db, { project_id });
  await claimAttempt(db, aClaim(run, instance, { reserved_nano: 1_000n }));
  await end(run, 200);
  await purgeLater();
  expect(await db('run').where({ run_id: run.run_id })).toHaveLength(1);
  await db('run').where({ run_id: run.run_id }).delete();
});

test('files go with the last run of their job, unless something that may still read them names them', async () => {
  await purgeLater();
  const media = await openMedia();
  const [gone, shared, young] = [await aCharged(), await aCharged(), await aCharged()];
  for (const { job_id } of [gone, shared, young])
    await media.put({ job_id, file: 'in/a.txt' }, Readable.from([Buffer.from('a')]), {
      contentType: 'text/plain',
      limitBytes: 10,
    });
  await Promise.all([end(gone, 91), end(shared, 91), end(young, 10)]);
  const open = await aRun(db, { project_id, job: { logo: `media://${shared.job_id}/in/a.txt` } });
  expect(await purgeLater()).toMatchObject({ run: 2, job: 1, media_file: 1 });
  expect((await media.list(gone.job_id)).files).toEqual([]);
  expect((await media.list(shared.job_id)).files).toHaveLength(1);
  expect((await media.list(young.job_id)).files).toHaveLength(1);
  await end(open, 95);
  await purgeLater();
  await purgeLater();
  expect((await media.list(shared.job_id)).files).toEqual([]);
});

test('a backlog goes in batches, each committed by itself, and what is stopped is continued', async () => {
  const runs: StoredRun[] = [];
  for (let n = 0; n < 4; n++) runs.push(await aRun(db, { project_id }));
  await Promise.all(runs.map((run) => end(run, 91)));
  // Two are wider than what one transaction takes.
  await db.raw(
    `insert into step (run_id, step_id, item, state) select r, 'a', i, 'succeeded' from unnest(?::text[]) r, generate_series(1, 2600) i`,
    [runs.map(({ run_id }) => run_id)],
  );
  let commits = 0;
  const watch = ({ sql }: { sql: string }) => {
    if (sql.startsWith('delete from run ')) commits++;
  };
  db.on('query', watch);
  const first = await purgeLater({ isStopping: () => commits >= 2 });
  expect(first.run).toBeGreaterThan(0);
  expect(first.run).toBeLessThan(4);
  const rest = await purgeLater();
  db.off('query', watch);
  expect((first.run ?? 0) + (rest.run ?? 0)).toBe(4);
  expect(commits).toBeGreaterThanOrEqual(4);
});

test('a trial lists the rows to delete and deletes none', async () => {
  const run = await aCharged();
  await end(run, 91);
  const trial = await purgeLater({ isTrial: true });
  expect(await rowsOf(run.run_id)).not.toBe(JSON.stringify(owned.map(() => 0)));
  expect(await purgeLater()).toEqual({ ...trial, media_file: 0 });
});

/** A tree of three levels, all of it old. */
async function aFamily(children: number): Promise<StoredRun> {
  const root = await aRun(db, { project_id });
  await end(root, 91);
  const copy = `insert into run
    select (jsonb_populate_record(r, jsonb_build_object('run_id', r.run_id || '.' || n, 'parent_run_id', r.run_id,
      'parent_step_id', 'a', 'parent_item', n, 'parent_revision', 0))).*
    from run r, generate_series(1, ?::int) n where r.run_id = any (?)`;
  await db.raw(copy, [children, [root.run_id]]);
  await db.raw(copy, [2, [`${root.run_id}.1`, `${root.run_id}.2`]]);
  return root;
}

test('a family of any size goes in transactions of a bounded one, runs before those that started them', async () => {
  const { run_id } = await aFamily(1_300);
  await db.raw(
    `insert into step (run_id, step_id, item, state)
     select run_id, 'b', i, 'succeeded' from run, generate_series(1, 3000) i where run_id = any (?)`,
    [[run_id, `${run_id}.1`, `${run_id}.1.1`, `${run_id}.1.2`]],
  );
  const gone: number[] = [];
  const steps: number[] = [];
  const watch = ({ rowCount }: { rowCount?: number }, { sql }: { sql: string }) => {
    if (sql.startsWith('delete from run ')) gone.push(rowCount ?? 0);
    if (sql.startsWith('delete from step ')) steps.push(rowCount ?? 0);
  };
  db.on('query-response', watch);
  await purgeLater({ isStopping: () => gone.length >= 2 });
  const left = new Map(
    (await db('run').where('run_id', 'like', `${run_id}%`)).map((run) => [run.run_id, run.parent_run_id]),
  );
  expect(left.has(run_id)).toBe(true);
  for (const parent of left.values()) expect(parent === null || left.has(parent)).toBe(true);
  await purgeLater();
  db.off('query-response', watch);
  expect(await db('run').where('run_id', 'like', `${run_id}%`)).toEqual([]);
  expect(Math.max(...gone)).toBeLessThanOrEqual(1_000);
  expect(Math.max(...steps)).toBeLessThanOrEqual(5_000);
});

test('rows of a run with very many go in statements of a bounded size', async () => {
  const run = await aRun(db, { project_id });
  await db.raw(`insert into event (run_id, type) select ?, 'step.retrying' from generate_series(1, 11999)`, [
    run.run_id,
  ]);
  await end(run, 91);
  const gone: number[] = [];
  const watch = ({ rowCount }: { rowCount?: number }, { sql }: { sql: string }) => {
    if (sql.startsWith('delete from event ')) gone.push(rowCount ?? 0);
  };
  db.on('query-response', watch);
  const events = Number((await db('event').where({ run_id: run.run_id }).count().first())?.count);
  expect(await purgeLater()).toMatchObject({ run: 1, event: events });
  db.off('query-response', watch);
  expect(Math.max(...gone)).toBeLessThanOrEqual(10_000);
});

test('a run that cannot go keeps no other run', async () => {
  const runs = [await aRun(db, { project_id }), await aRun(db, { project_id })];
  await Promise.all(runs.map((run) => end(run, 91)));
  // Both are wider than what one transaction takes.
  await db.raw(
    `insert into step (run_id, step_id, item, state)
     select r, 'a', i, 'succeeded' from unnest(?::text[]) r, generate_series(1, 2501) i`,
    [runs.map(({ run_id }) => run_id)],
  );
  const [stuck] = runs.map(({ run_id }) => run_id).sort();
  await db.raw(`create function stick() returns trigger language plpgsql as $$
    begin raise exception 'stuck'; end $$`);
  await db.raw(`create trigger stick before delete on run for each row when (old.run_id = '${stuck}')
    execute function stick()`);
  await expect(purgeLater()).rejects.toThrow('stuck');
  await db.raw('drop function stick cascade');
  const ids = runs.map(({ run_id }) => run_id);
  expect(await db('run').whereIn('run_id', ids).pluck('run_id')).toEqual([stuck]);
  expect(await purgeLater()).toMatchObject({ run: 1 });
});

test('of a family that is needed no run goes, however large it is', async () => {
  const { run_id } = await aFamily(1_200);
  const repeats = await aRun(db, { project_id, rerun_of: `${run_id}.1200` });
  await purgeLater();
  expect(await db('run').where('run_id', 'like', `${run_id}%`)).toHaveLength(1_205);
  await db('run').where({ run_id: repeats.run_id }).delete();
  await purgeLater();
  expect(await db('run').where('run_id', 'like', `${run_id}%`)).toEqual([]);
});

test('calls without a run go, ladders with the calls that they made, open ones stay', async () => {
  const [old, open] = [
    aClaim({ run_id: '', project_id }, instance),
    aClaim({ run_id: '', project_id }, instance),
  ].map((claim, n) => ({ ...claim, step: null, run_id: null, key: `call_${n}` }));
  for (const claim of [old, open]) if (claim !== undefined) await claimAttempt(db, claim);
  if (old !== undefined) await settleAttempt(db, anEnd(old));
  expect(await purgeLater()).toMatchObject({ attempt: 1 });
  expect(await db('attempt').where({ attempt_id: open?.attempt_id ?? '' })).toHaveLength(1);
});

test('entries of the books are deleted after their own time alone, months of the ledger as a whole, by retention alone', async () => {
  await aCharged();
  await db('audit').insert({ project_id, actor: 'key', action: 'a', subject: 's' });
  await expect(db('ledger_entry').delete()).rejects.toThrow('append-only');
  const purgeBooks = (bookDays: number) =>
    purgeLater({
      retention: { runDays: null, choiceDays: null, bookDays },
      now: new Date(later.getTime() + 100 * dayMs),
    });
  expect(await purgeBooks(201)).toEqual({ ledger_entry: 0, audit: 0 });
  const entries = Number((await db('ledger_entry').count().first())?.count);
  expect(await purgeBooks(99)).toEqual({ ledger_entry: entries, audit: 1 });
  await aCharged(); // of a month without a part
  await expect(db('ledger_entry').delete()).rejects.toThrow('append-only');
  await expect(db('ledger_entry').update({ amount_nano: 0 })).rejects.toThrow('append-only');
  expect(await purgeBooks(99)).toEqual({ ledger_entry: 2, audit: 0 });
});

test('a run that is being repeated at that moment stays, and a repetition that comes too late is refused', async () => {
  const run = await aCharged();
  await end(run, 91);
  const trx = await db.transaction();
  await trx.raw('select from run where run_id = ? for key share', [run.run_id]);
  await purgeLater();
  expect(await db('run').where({ run_id: run.run_id })).toHaveLength(1);
  await trx.commit();
  expect(await purgeLater()).toMatchObject({ run: 1 });
});

test('files whose job is gone are found again, also when nothing else is purged any more', async () => {
  const run = await aCharged();
  await end(run, 91);
  const media = await openMedia();
  const body = Readable.from([Buffer.from('a')]);
  await media.put({ job_id: run.job_id, file: 'a' }, body, { contentType: 'text/plain', limitBytes: 10 });
  await db('media_object')
    .where({ job_id: run.job_id })
    .update({ created_at: new Date(0) });
  const broken = { deleteJob: () => Promise.reject(new Error('the store is away')) };
  await expect(purgeLater({ media: broken })).rejects.toThrow('the store is away');
  expect(await db('job').where({ job_id: run.job_id })).toEqual([]);
  expect(await db('leaving_job').pluck('job_id')).toEqual([run.job_id]);
  const never = { runDays: null, choiceDays: null, bookDays: null };
  expect(await purgeLater({ retention: never })).toEqual({ media_file: 1 });
  expect(await db('leaving_job')).toEqual([]);
});

test('files are deleted while no transaction is open, and their job is gone by then', async () => {
  const run = await aCharged();
  await end(run, 91);
  const seen: unknown[] = [];
  const deleteJob = async (jobId: string): Promise<number> => {
    const open = db('pg_stat_activity')
      // Of clients: the database cleans up by transactions of its own.
      .whereRaw(
        "datname = current_database() and backend_type = 'client backend' and backend_xid is not null",
      )
      .pluck('query');
    seen.push(await open, await db('job').where({ job_id: jobId }));
    return 0;
  };
  await purgeLater({ media: { deleteJob } });
  expect(seen).toEqual([[], []]);
});

test('a store that is away lets no more jobs go than are tried at once', async () => {
  const body = await aRun(db, { project_id });
  await end(body, 91);
  await db.raw(
    `insert into job (job_id, project_id, body, created_at)
     select replace(?, right(?, 4), lpad(n::text, 4, '0')), ?, '{}', to_timestamp(0) from generate_series(1, 120) n`,
    [body.job_id, body.job_id, project_id],
  );
  const broken = { deleteJob: () => Promise.reject(new Error('the store is away')) };
  for (const _pass of [1, 2])
    await expect(purgeLater({ media: broken })).rejects.toThrow('the store is away');
  expect(await db('leaving_job').count()).toEqual([{ count: '50' }]);
  expect(await purgeLater()).toMatchObject({ job: 71 });
  expect(await db('leaving_job')).toEqual([]);
});

test('a job whose files cannot be deleted keeps no other job', async () => {
  const runs = [await aCharged(), await aCharged(), await aCharged()];
  for (const run of runs) await end(run, 91);
  const stuck = runs[0]?.job_id ?? '';
  const library = await openMedia();
  const deleteJob = (jobId: string) =>
    jobId === stuck ? Promise.reject(new Error('may not be deleted')) : library.deleteJob(jobId);
  await expect(purgeLater({ media: { deleteJob } })).rejects.toThrow('may not be deleted');
  const ids = runs.map(({ job_id }) => job_id);
  expect(await db('job').whereIn('job_id', ids)).toEqual([]);
  expect(await db('leaving_job').pluck('job_id')).toEqual([stuck]);
  await purgeLater();
  expect(await db('leaving_job')).toEqual([]);
});

test('a row that cannot be deleted does not keep others, and is reported', async () => {
  const [old, young] = [await aCharged(), await aCharged()];
  await Promise.all([end(old, 91), end(young, 40)]);
  await db('audit').insert({ project_id, actor: 'key', action: 'a', subject: 's' });
  const broken = { deleteJob: () => Promise.reject(new Error('the store is away')) };
  const retention = { runDays: 90, choiceDays: 30, bookDays: 99 };
  await expect(purgeLater({ media: broken, retention })).rejects.toThrow('the store is away');
  const chosen = db('attempt').select('attempt_id').where({ run_id: young.run_id });
  expect(await db('attempt_choice').whereIn('attempt_id', chosen)).toEqual([]);
  expect(await db('audit').count()).toEqual([{ count: '0' }]);
});

test('a job stays while something came into it, or was announced, within the time that runs are kept', async () => {
  const media = await openMedia();
  const { job_id } = await aRun(db, { project_id });
  await db('run').where({ job_id }).delete();
  const body = Readable.from([Buffer.from('a')]);
  await media.put({ job_id, file: 'a.txt' }, body, { contentType: 'text/plain', limitBytes: 10 });
  const writtenAgo = (days: number) =>
    db('media_object')
      .where({ job_id })
      .update({ created_at: new Date(later.getTime() - days * dayMs) });
  await writtenAgo(89);
  await purgeLater();
  expect((await media.list(job_id)).files).toHaveLength(1);
  await writtenAgo(91);
  const upload = {
    job_id,
    file: 'b.txt',
    size: 1,
    sha256: '00',
    content_type: 'text/plain',
    upload_id: null,
  };
  await announceUpload(db, project_id, { ...upload, token: '01' });
  await db('media_object').where({ job_id, state: 'announced' }).update({ created_at: later });
  expect(await purgeLater({ isTrial: true })).not.toMatchObject({ job: 1 });
  await purgeLater();
  expect(await db('job').where({ job_id })).toHaveLength(1);
  await writtenAgo(91);
  expect(await purgeLater()).toMatchObject({ job: 1, media_file: 1 });
});

test('choices go before their runs do, those of open runs stay', async () => {
  const [ended, open] = [await aCharged(), await aCharged()];
  await end(ended, 40);
  const retention = { runDays: 90, choiceDays: 30, bookDays: null };
  const choices = (run_id: string) =>
    db('attempt_choice').join('attempt', 'attempt.attempt_id', 'attempt_choice.attempt_id').where({ run_id });
  const trial = await purgeLater({ retention, isTrial: true });
  expect(await purgeLater({ retention })).toMatchObject({ attempt_choice: trial.attempt_choice });
  expect(await choices(ended.run_id)).toEqual([]);
  expect(await choices(open.run_id)).toHaveLength(1);
  expect(await db('attempt').where({ run_id: ended.run_id })).toHaveLength(1);
  await end(open, 40);
  expect(await purgeLater({ retention })).toMatchObject({ attempt_choice: 1 });
  const parts = await db('pg_inherits').whereRaw(`inhparent = 'attempt_choice'::regclass`).count();
  expect(Number(parts[0]?.count)).toBeLessThan(6); // the weeks that are over are gone
});
