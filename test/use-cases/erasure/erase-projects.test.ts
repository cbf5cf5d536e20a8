import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toAppError } from '@capstan/core/errors/app-error';
import { createMediaStore } from '@capstan/media-store/create-media-store';
import fc from 'fast-check';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { insertKey } from '../../../src/db/access/api-key.ts';
import { parkCall, receiveAnswer } from '../../../src/db/attempt/callback.ts';
import { findDrift } from '../../../src/db/money/budget-drift.ts';
import { insertDefinition } from '../../../src/db/pipeline.ts';
import { readUndeliveredSchedule, tryScheduleTurn } from '../../../src/db/schedule.ts';
import { newId } from '../../../src/parts/ids.ts';
import { createMediaLibrary, type MediaLibrary } from '../../../src/parts/media/media-library.ts';
import type { Caller } from '../../../src/use-cases/access/caller.ts';
import { eraseProjects } from '../../../src/use-cases/erasure/erase-projects.ts';
import { beginErasure, showErasure } from '../../../src/use-cases/erasure/erasure.ts';
import type { EraseCtx } from '../../../src/use-cases/erasure/erasure-steps.ts';
import { useDatabase } from '../../support/database.ts';
import {
  aClaim,
  anEnd,
  anInstance,
  aProject,
  aRun,
  claimAttempt,
  settleAttempt,
} from '../../support/factories.ts';
import { fakeWorkflows } from '../../support/run-workflows.ts';
import { runs } from '../../support/runs.ts';
import { listTables, tablesNaming } from '../../support/tables.ts';
import { aFullProject } from './a-full-project.ts';

const { db } = useDatabase();
let folder: string;
let media: MediaLibrary;
let kept: Awaited<ReturnType<typeof aFullProject>>;
let marks = 0;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'capstan-erase-'));
  const store = await createMediaStore(`file://${folder}/media`);
  media = createMediaLibrary({ db, store, bytesPerProject: 0 });
  const { project_id } = await aProject(db);
  kept = await aFullProject({ db, media, mark: 'kept-text' }, project_id);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function operator(projects: readonly string[]): Caller {
  return { key_id: 'op', projects, project_id: projects[0] ?? '', scopes: new Set(['operator']) };
}

interface EraserParts extends Partial<EraseCtx['temporal']> {
  readonly media?: EraseCtx['media'];
  readonly quietMs?: number;
}

function eraser({ quietMs = 0, ...parts }: EraserParts = {}) {
  const temporal = { workflows: fakeWorkflows(), schedules: { remove: async () => undefined }, ...parts };
  const ctx: EraseCtx = { db, logger: pino({ level: 'silent' }), temporal, media: parts.media ?? media };
  return (isStopping: () => boolean) => eraseProjects(ctx, isStopping, quietMs);
}

/** What its workflows would do. */
async function closeRuns(project_id: string): Promise<void> {
  await db('run')
    .where({ project_id, state: 'cancelling' })
    .update({ state: 'cancelled', finished_at: new Date(), start_delivered_at: new Date() });
}

async function money() {
  const { rows } = await db.raw(`select (select sum(amount_nano) from ledger_entry)::text as ledger,
    (select count(*) from ledger_entry)::int as entries, (select count(*) from audit)::int as acts,
    (select json_agg(b order by window_start) from budget b where scope = 'global')::text as global`);
  return rows[0];
}

async function rowsOf(project_id: string, mark: string): Promise<string> {
  const counts: unknown[] = [];
  for (const table of await listTables(db)) {
    if (['audit', 'erasure', 'api_key', 'person'].includes(table)) continue;
    const { rows } = await db.raw(
      `select count(*)::int as n, md5(coalesce(string_agg(t::text, ',' order by t::text), '')) as text from ?? t
       where strpos(t::text, ?) > 0 or strpos(t::text, ?) > 0`,
      [table, project_id, mark],
    );
    counts.push([table, rows[0]]);
  }
  return JSON.stringify(counts);
}

function nextMark(): string {
  marks += 1;
  return `gone-text-%_;:'☃${'x'.repeat(marks)}y`;
}

async function eraseWholly(project_id: string, erase = eraser(), rounds = 100): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const ended = await erase(() => false).catch(() => 0);
    if (ended === 1) return;
    await closeRuns(project_id);
  }
  throw new Error('it does not end');
}

test('no row of any table names the project, its texts or its keys; others and sums stay as they were', async () => {
  const mark = nextMark();
  const other = await aProject(db, { name: 'other' });
  const { project_id, key_id, run } = await aFullProject({ db, media, mark }, other.project_id);
  const { rows: owning } = await db.raw<{ rows: { name: string }[] }>(
    `select distinct table_name as name from information_schema.columns c join pg_class r on r.relname = c.table_name
     where table_schema = 'public' and not r.relispartition and column_name in ('project_id', 'owner_project', 'projects')`,
  );
  const before = await tablesNaming(db, project_id);
  for (const { name } of owning) if (name !== 'erasure') expect(before).toContain(name);
  expect(await findDrift(db)).toEqual([]);
  const [sums, others] = [await money(), await rowsOf(kept.project_id, 'kept-text')];
  await beginErasure({ db }, operator([other.project_id]), project_id);
  await eraseWholly(project_id);
  for (const text of [project_id, mark, key_id]) expect(await tablesNaming(db, text), text).toEqual([]);
  expect(await db('attempt_choice').count()).toEqual([{ count: '3' }]);
  expect(existsSync(join(folder, 'media', run.job_id))).toBe(false);
  expect(await media.exists({ job_id: kept.run.job_id, file: 'in.txt' })).toBe(true);
  expect(await money()).toEqual({ ...sums, acts: sums.acts + 1 });
  expect(await findDrift(db)).toEqual([]);
  expect(await rowsOf(kept.project_id, 'kept-text')).toBe(others);
  const shown = await showErasure({ db }, project_id);
  expect(shown).toMatchObject({ state: 'erased', deleted: { run: 2, job: 2, media_file: 1 } });
  expect(
    await db('ledger_entry').where({ project_id: shown.pseudonym }).sum('amount_nano as nano'),
  ).not.toEqual([{ nano: null }]);
  expect(await beginErasure({ db }, operator([other.project_id]), project_id)).toEqual(shown);
});

test('from the first moment it refuses new work, of trusted keys too, and new keys', async () => {
  const { project_id } = await aProject(db);
  await beginErasure({ db }, operator([kept.project_id]), project_id);
  await expect(aRun(db, { project_id })).rejects.toMatchObject({ code: 'CAP01' });
  const job = { job_id: 'job_x', project_id, body: {} };
  await expect(db('job').insert(job)).rejects.toMatchObject({ code: 'CAP01' });
  await eraseWholly(project_id);
});

test('work that is being written is waited for, and then erased', async () => {
  const { project_id } = await aProject(db);
  const trx = await db.transaction();
  const { run_id } = await aRun(trx as unknown as typeof db, { project_id });
  let isBegun = false;
  const begun = beginErasure({ db }, operator([kept.project_id]), project_id).then(() => {
    isBegun = true;
  });
  await db.raw('select 1');
  expect(isBegun).toBe(false);
  await trx.commit();
  await begun;
  await eraseWholly(project_id);
  expect(await db('run').where({ run_id })).toEqual([]);
});

test('an erasure that dies anywhere continues, and ends as if it had not', async () => {
  const other = await aProject(db);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(12), { minLength: 1, maxLength: 4 }), async (deaths) => {
      const mark = nextMark();
      const { project_id, key_id } = await aFullProject({ db, media, mark }, other.project_id);
      const sums = await money();
      await beginErasure({ db }, operator([other.project_id]), project_id);
      for (const steps of deaths) {
        let left = steps;
        const die = <Answer>(work: () => Promise<Answer>): Promise<Answer> => {
          if (left === 0) return Promise.reject(new Error('died'));
          left -= 1;
          return work();
        };
        const workflows = fakeWorkflows({
          erase: () => die(async () => true),
          eraseLadder: () => die(async () => true),
        });
        const dying = { directUploadMs: 0, deleteJob: (id: string) => die(() => media.deleteJob(id)) };
        await eraser({ workflows, media: dying })(() => left === 0).catch(() => undefined);
        await closeRuns(project_id);
        expect(await findDrift(db)).toEqual([]);
      }
      if ((await showErasure({ db }, project_id)).state === 'erasing') await eraseWholly(project_id);
      for (const text of [project_id, mark, key_id]) expect(await tablesNaming(db, text)).toEqual([]);
      expect(await money()).toEqual({ ...sums, acts: sums.acts + 1 });
    }),
    { numRuns: runs(3) },
  );
});

test('histories that Temporal still deletes, and recent calls, are waited for', async () => {
  const { project_id, run } = await aFullProject({ db, media, mark: nextMark() }, kept.project_id);
  await beginErasure({ db }, operator([kept.project_id]), project_id);
  const slow = eraser({ workflows: fakeWorkflows({ erase: async () => false }) });
  await slow(() => false);
  await closeRuns(project_id);
  expect(await slow(() => false)).toBe(0);
  expect(await db('run').where({ run_id: run.run_id })).toHaveLength(1);
  expect(await eraser({ quietMs: 60_000 })(() => false)).toBe(0);
  await eraseWholly(project_id);
});

test('the default project, an unknown one and the only one of the key are refused', async () => {
  const first = await aProject(db, { name: 'default' });
  await expect(beginErasure({ db }, operator([kept.project_id]), first.project_id)).rejects.toMatchObject({
    code: 'state_conflict',
  });
  await expect(beginErasure({ db }, operator([kept.project_id]), 'prj_none')).rejects.toMatchObject({
    code: 'not_found',
  });
  const only = operator([kept.project_id]);
  await expect(beginErasure({ db }, only, kept.project_id)).rejects.toMatchObject({ code: 'state_conflict' });
  await expect(showErasure({ db }, 'prj_none')).rejects.toMatchObject({ code: 'not_found' });
  expect(await showErasure({ db }, kept.project_id)).toMatchObject({
    pseudonym: null,
    state: 'none',
    deleted: {},
    left: { run: 2, open_run: 2, media_object: 1, api_key: 2, instance: 1 },
  });
});

async function erasing(name = 'going'): Promise<string> {
  const { project_id } = await aProject(db, { name });
  await beginErasure({ db }, operator([kept.project_id]), project_id);
  return project_id;
}

async function stateOf(project_id: string) {
  return (await showErasure({ db }, project_id)).state;
}

test('a definition goes with the last that names it, and none that the project never named', async () => {
  const [going, other] = [await aProject(db), await aProject(db)];
  const loneText = { pipeline: 'lone', description: nextMark() };
  const both = { pipeline: 'both', description: nextMark() };
  const unnamed = await aRun(db, { project_id: other.project_id, definition: { pipeline: nextMark() } });
  for (const definition of [loneText, both]) await aRun(db, { project_id: going.project_id, definition });
  const theirs = await aRun(db, { project_id: other.project_id, definition: both });
  await db('event').where({ run_id: unnamed.run_id }).delete();
  await db('run').where({ run_id: unnamed.run_id }).delete();
  await beginErasure({ db }, operator([kept.project_id]), going.project_id);
  await eraseWholly(going.project_id);
  expect(await tablesNaming(db, loneText.description)).toEqual([]);
  expect(await db('definition').where({ digest: theirs.digest })).toHaveLength(1);
  expect(await db('definition').where({ digest: unnamed.digest })).toHaveLength(1);
});

test('a call that was written behind the place that was looked at is found before the end', async () => {
  const { project_id } = await aProject(db);
  const run = await aRun(db, { project_id: kept.project_id });
  await beginErasure({ db }, operator([kept.project_id]), project_id);
  await db('erasure').where({ project_id }).update({ attempts_after: 'att_f' });
  const instance = await anInstance(db);
  const claim = { ...aClaim(run, instance, { step: null, key: newId('call') }), project_id };
  await claimAttempt(db, claim);
  await settleAttempt(db, anEnd(claim));
  await eraseWholly(project_id);
  expect(await tablesNaming(db, project_id)).toEqual([]);
});

async function parked(project_id: string) {
  const run = await aRun(db, { project_id });
  const claim = aClaim(run, await anInstance(db), { reserved_nano: 100n });
  await claimAttempt(db, claim);
  const later = { slot: 'freed', settle: 'computed', spec_digest: null } as const;
  expect(await parkCall(db, claim, { timeoutMs: 3_600_000, later })).not.toBeNull();
  return claim;
}

test.each(['no answer', 'a late answer', 'an answer that was settled'])(
  'a call that waits for its later answer is not waited for: %s',
  async (what) => {
    const mark = nextMark();
    const { project_id } = await aProject(db);
    const { attempt_id, step, ...claim } = await parked(project_id);
    if (what === 'a late answer') {
      await db('attempt')
        .where({ attempt_id })
        .update({ answers_by: new Date(0), lease_until: new Date(0) });
      expect(await receiveAnswer(db, attempt_id, { body: Buffer.from(mark), key_id: null })).toBe('overdue');
    }
    if (what === 'an answer that was settled') {
      expect(await receiveAnswer(db, attempt_id, { body: Buffer.from(mark), key_id: null })).toBe('taken');
      await db('attempt').where({ attempt_id }).update({ token: claim.token });
      await settleAttempt(db, anEnd({ attempt_id, step, ...claim }));
    }
    await beginErasure({ db }, operator([kept.project_id]), project_id);
    await eraseWholly(project_id, eraser(), 5);
    expect(await db('callback_answer').where({ attempt_id })).toEqual([]);
    expect(await receiveAnswer(db, attempt_id, { body: Buffer.from(mark), key_id: null })).toBe('unknown');
    expect(await tablesNaming(db, project_id)).toEqual([]);
    expect(await findDrift(db)).toEqual([]);
  },
);

test('a schedule on its way to Temporal is waited for, and not sent again', async () => {
  const project_id = await erasing();
  const row = {
    schedule_id: newId('schedule'),
    project_id,
    workflow_id: 'w',
    created_by: 'k',
    name: 'n',
    body: {},
  };
  await db.raw('alter table schedule disable trigger schedule_refuse_erased');
  await db('schedule').insert({ ...row, version: 2, delivered_version: 1 });
  await db.raw('alter table schedule enable trigger schedule_refuse_erased');
  const removed: string[] = [];
  const erase = eraser({ schedules: { remove: async ({ workflow_id }) => void removed.push(workflow_id) } });
  const trx = await db.transaction();
  expect(await tryScheduleTurn(trx, row.schedule_id)).toBe(true);
  await erase(() => false);
  expect([removed, await stateOf(project_id)]).toEqual([[], 'erasing']);
  expect(await readUndeliveredSchedule(db, row.schedule_id, 'another key')).toBeUndefined();
  await trx.commit();
  await eraseWholly(project_id, erase);
  expect(removed).toEqual(['w']);
});

test('a file that may still come past us is waited for', async () => {
  const { project_id } = await aProject(db);
  const { job_id } = await aRun(db, { project_id });
  await db('media_object').insert({
    project_id,
    job_id,
    file: 'late.txt',
    size: 1,
    sha256: Buffer.from('x'),
    content_type: 'text/plain',
    state: 'announced',
    token: Buffer.from('late'),
  });
  await beginErasure({ db }, operator([kept.project_id]), project_id);
  const direct = { directUploadMs: 3_600_000, deleteJob: (id: string) => media.deleteJob(id) };
  const erase = eraser({ media: direct });
  await expect(eraseWholly(project_id, erase, 10)).rejects.toThrow('it does not end');
  expect(await db('job').where({ job_id })).toHaveLength(1);
  expect(await showErasure({ db }, project_id)).toMatchObject({ left: { job: 1 } });
  await db('media_object')
    .where({ job_id })
    .update({ created_at: db.raw(`now() - interval '2 hours'`) });
  await eraseWholly(project_id, erase);
});

test('an instance in the middle of a call of another project is waited for', async () => {
  const { project_id } = await aProject(db);
  const instance = await anInstance(db, { owner_project: project_id });
  const run = await aRun(db, { project_id: kept.project_id });
  const claim = aClaim(run, instance);
  await claimAttempt(db, claim);
  await beginErasure({ db }, operator([kept.project_id]), project_id);
  await eraser()(() => false);
  expect(await showErasure({ db }, project_id)).toMatchObject({ state: 'erasing', left: { instance: 1 } });
  await settleAttempt(db, anEnd(claim));
  await eraseWholly(project_id);
});

test('an erasure that does not get on delays no other, and the runs of all are ended first', async () => {
  const [stuck, next] = [await aProject(db), await aProject(db)];
  const runs: { run_id: string }[] = [];
  for (const { project_id } of [stuck, next]) runs.push(await aRun(db, { project_id }));
  for (const { project_id } of [stuck, next])
    await beginErasure({ db }, operator([kept.project_id]), project_id);
  const workflows = fakeWorkflows({
    erase: ({ run_id }) =>
      run_id === runs[0]?.run_id ? Promise.reject(new Error('away')) : Promise.resolve(true),
  });
  const erase = eraser({ workflows });
  await erase(() => false);
  for (const { run_id } of runs)
    expect(await db('run').where({ run_id }).first()).toMatchObject({ cancel_mode: 'terminate' });
  for (const { project_id } of [stuck, next]) await closeRuns(project_id);
  expect(await erase(() => false)).toBe(1);
  expect([await stateOf(stuck.project_id), await stateOf(next.project_id)]).toEqual(['erasing', 'erased']);
  await eraseWholly(stuck.project_id);
});

test('a key that was made beside the beginning, for several projects, keeps the others', async () => {
  const project_id = await erasing();
  const key = { key_id: newId('escalation'), name: 'beside', scopes: ['admin'] as const, created_by: null };
  const projects = [kept.project_id, project_id];
  await insertKey(db, { ...key, projects, secret_sha256: Buffer.from('beside'), expires_at: null });
  await eraseWholly(project_id);
  expect(await db('api_key').where({ key_id: key.key_id }).first()).toMatchObject({
    projects: [kept.project_id],
    revoked_at: null,
  });
});

test('a caller that submits an equal definition during the deletion receives unavailable', async () => {
  const [going, other] = [await aProject(db), await aProject(db)];
  const definition = { pipeline: 'equal', description: nextMark() };
  const { digest } = await aRun(db, { project_id: going.project_id, definition });
  const { job_id } = await aRun(db, { project_id: other.project_id });
  await beginErasure({ db }, operator([kept.project_id]), going.project_id);
  const trx = await db.transaction();
  await insertDefinition(trx, { digest, body: definition as never }); // it exists
  await eraseWholly(going.project_id);
  const row = {
    run_id: newId('run'),
    project_id: other.project_id,
    job_id,
    pipeline: 'equal',
    version: '1',
    priority: 'standard',
    digest,
  };
  const thrown = await trx('run')
    .insert(row)
    .catch((error: unknown) => error);
  await trx.rollback();
  expect(toAppError(thrown)).toMatchObject({ code: 'unavailable', retryAfterS: 0 });
});
