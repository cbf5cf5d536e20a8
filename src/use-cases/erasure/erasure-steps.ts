/**
 * The steps of an erasure; each returns whether it is complete. The open work of a project is ended first, then its
 * histories in Temporal are deleted, then its rows (E3). Then the rest is deleted: files, skills and other stored
 * things, its part of ledger and audit log, its keys and its name.
 */

import type { RunWorkflows } from '../../clients/temporal/run-workflows.ts';
import type { TemporalSchedules } from '../../clients/temporal/schedules.ts';
import type { Ctx } from '../../context.ts';
import { loseParkedCalls } from '../../db/attempt/callback.ts';
import { deletedTables } from '../../db/deletion/deleted-tables.ts';
import {
  type ErasedBook,
  type ErasedRun,
  eraseAttempts,
  eraseBook,
  eraseNames,
  eraseRuns,
  eraseSchedule,
  findLatePlace,
  hasInstances,
  listEndedSchedules,
  listErasableJobs,
  listErasableRuns,
  listRunsToEnd,
  pageAttempts,
  stopWork,
} from '../../db/deletion/erased-rows.ts';
import {
  deleteKeys,
  finishErasure,
  listKeysOfProject,
  type OpenErasure,
  untieKeys,
} from '../../db/deletion/erasure.ts';
import { deleteJobs, forgetLeavingJobs, listLeavingJobs } from '../../db/deletion/old-jobs.ts';
import { takeLock } from '../../db/locks.ts';
import { requestCancel } from '../../db/run/run-control.ts';
import type { MediaLibrary } from '../../parts/media/media-library.ts';
import { count, type DeletionPass, emptyTable } from '../retention/deletion-pass.ts';

// One erasure, for one maintenance tick.

export interface EraseCtx extends Pick<Ctx, 'db' | 'logger'> {
  readonly temporal: {
    readonly workflows: Pick<
      RunWorkflows,
      'erase' | 'eraseLadder' | 'eraseStart' | 'eraseSchedule' | 'eraseProject'
    >;
    readonly schedules: Pick<TemporalSchedules, 'remove'>;
  };
  readonly media: Pick<MediaLibrary, 'deleteJob' | 'directUploadMs'>;
}

export interface ErasurePass extends EraseCtx, Omit<DeletionPass, 'db' | 'erasure'> {
  /** Work that a cached key has begun is visible after this time at the latest. */
  readonly quietMs: number;
  erasure: OpenErasure;
}

/** The most ids in one request to Temporal. */
const atOnce = 8;

/** The ids that Temporal still has, in their order. */
async function filterOf<Item>(
  items: readonly Item[],
  holds: (item: Item) => Promise<boolean>,
): Promise<Item[]> {
  const found: Item[] = [];
  for (let at = 0; at < items.length; at += atOnce) {
    const some = items.slice(at, at + atOnce);
    const answers = await Promise.all(some.map(holds));
    found.push(...some.filter((_, index) => answers[index]));
  }
  return found;
}

const rowsAtOnce = 1_000;
const runsAtOnce = 200;
/** Each may have thousands of steps. */
const runsOfTransaction = 10;
const laddersAtOnce = 200;
const attemptsAtOnce = 5_000;

export async function endWork({
  db,
  erasure: { project_id },
  isStopping,
}: Pick<ErasurePass, 'db' | 'erasure' | 'isStopping'>): Promise<void> {
  await stopWork(db, project_id);
  const order = { reason: 'the project is erased', mode: 'terminate' } as const;
  for (;;) {
    const runs = await listRunsToEnd(db, project_id, rowsAtOnce);
    if (runs.length === 0) return;
    for (const run_id of runs) {
      if (isStopping()) return;
      await requestCancel(db, { project_id, run_id }, order);
    }
  }
}

export async function eraseSchedules(pass: ErasurePass): Promise<boolean> {
  const { db, erasure } = pass;
  const { schedules, workflows } = pass.temporal;
  let isThrough = true;
  for (const schedule of await listEndedSchedules(db, erasure.project_id)) {
    if (pass.isOver()) return false;
    const isGone = await eraseSchedule(db, schedule, async ({ workflow_id }) => {
      await schedules.remove({ workflow_id });
      return workflows.eraseSchedule(workflow_id);
    });
    if (isGone) await count(pass, { schedule: 1 });
    else isThrough = false;
  }
  return isThrough;
}

async function isForgotten(
  { temporal: { workflows } }: ErasurePass,
  { schedule_start, ...run }: ErasedRun,
): Promise<boolean> {
  const isStartGone = schedule_start === null || (await workflows.eraseStart(schedule_start));
  return (await workflows.erase(run)) && isStartGone;
}

/** Temporal deletes asynchronously: the next tick looks at the rest. */
export async function eraseEndedRuns(pass: ErasurePass): Promise<boolean> {
  const { db, erasure } = pass;
  const { workflows } = pass.temporal;
  const { project_id } = erasure;
  await loseParkedCalls(db, project_id);
  while (!pass.isOver()) {
    const runs = await listErasableRuns(db, project_id, runsAtOnce);
    const going = (await filterOf(runs, (run) => isForgotten(pass, run))).map(({ run_id }) => run_id);
    if (going.length === 0) break;
    for (let at = 0; at < going.length; at += runsOfTransaction) {
      const some = going.slice(at, at + runsOfTransaction);
      await count(pass, await db.transaction((trx) => eraseRuns(trx, erasure, some)));
    }
  }
  if ((await db('run').where({ project_id }).first('run_id')) !== undefined) return false;
  return workflows.eraseProject(project_id);
}

export async function eraseLadders(pass: ErasurePass): Promise<boolean> {
  const { db, erasure } = pass;
  const { workflows } = pass.temporal;
  while (!pass.isOver()) {
    const ids: string[] = await db('escalation')
      .where({ project_id: erasure.project_id })
      .orderBy('escalation_id')
      .limit(laddersAtOnce)
      .pluck('escalation_id');
    if (ids.length === 0) return true;
    const going = await filterOf(ids, (id) => workflows.eraseLadder(id));
    if (going.length === 0) return false;
    await count(pass, { escalation: await db('escalation').whereIn('escalation_id', going).delete() });
  }
  return false;
}

/** Deletes the calls that no run has made. */
export async function eraseCalls(pass: ErasurePass): Promise<boolean> {
  const { db, erasure, quietMs } = pass;
  const { project_id } = erasure;
  while (!pass.isOver()) {
    const { own, place, is_blocked } = await pageAttempts(db, {
      project_id,
      quietMs,
      after: pass.erasure.attempts_after,
      limit: attemptsAtOnce,
    });
    const attempt = await db.transaction((trx) => eraseAttempts(trx, erasure, own));
    if (place !== null) pass.erasure = { ...pass.erasure, attempts_after: place };
    await count(pass, { attempt });
    if (is_blocked) return false;
    if (place === null) return true;
  }
  return false;
}

/** Repeated just before the project itself is deleted, for late rows. */
export async function findLateCalls(pass: ErasurePass): Promise<boolean> {
  const place = await findLatePlace(pass.db, pass.erasure);
  if (place === null) return true;
  pass.erasure = { ...pass.erasure, attempts_after: place };
  await count(pass, {});
  return false;
}

// The rest of a project: files, skills and other stored things, its part of ledger and audit log, its keys and its
// name.

const jobsAtOnce = 50;
/** The clocks of the database and of the store may differ. */
const skewMs = 300_000;

/** Jobs that retention has deleted and whose files still exist. */
async function eraseLeavingFiles(pass: ErasurePass): Promise<void> {
  const { db, media, erasure } = pass;
  while (!pass.isOver()) {
    const page = { after: '', limit: jobsAtOnce, projectId: erasure.project_id };
    const ids = await listLeavingJobs(db, page);
    if (ids.length === 0) return;
    let media_file = 0;
    for (const id of ids) media_file += await media.deleteJob(id);
    await forgetLeavingJobs(db, ids);
    await count(pass, { media_file });
  }
}

/** Files are deleted before the row of their job (E3). */
export async function eraseJobs(pass: ErasurePass): Promise<boolean> {
  const { db, media, erasure } = pass;
  const { project_id } = erasure;
  await eraseLeavingFiles(pass);
  const ms = media.directUploadMs === 0 ? 0 : media.directUploadMs + skewMs;
  while (!pass.isOver()) {
    const ids = await listErasableJobs(db, project_id, { ms, limit: jobsAtOnce });
    if (ids.length === 0) return (await db('job').where({ project_id }).first('job_id')) === undefined;
    let media_file = 0;
    for (const id of ids) media_file += await media.deleteJob(id);
    await count(pass, { job: await deleteJobs(db, ids), media_file });
  }
  return false;
}

/** Runs to its end: its position is not stored. */
async function rewriteBook(pass: ErasurePass, book: ErasedBook, keys: readonly string[]): Promise<void> {
  const { db, erasure } = pass;
  let after: string | null = '0';
  while (after !== null && !pass.isStopping())
    after = await eraseBook(db, book, { ...erasure, keys, after, most: rowsAtOnce });
}

export async function eraseTables(pass: ErasurePass): Promise<boolean> {
  const { db, erasure } = pass;
  const projectId = erasure.project_id;
  for (const row of deletedTables) await emptyTable(pass, row, { projectId });
  return !pass.isOver() && !(await hasInstances(db, projectId));
}

export async function rewriteBooks(pass: ErasurePass): Promise<boolean> {
  const keys = await listKeysOfProject(pass.db, pass.erasure.project_id);
  for (const book of ['ledger_entry', 'audit'] as const) await rewriteBook(pass, book, keys);
  return !pass.isStopping();
}

/** Deletes the project's row, which stays while late rows refer to it. */
export async function finish(pass: ErasurePass): Promise<boolean> {
  const { db, erasure } = pass;
  await db.transaction(async (trx) => {
    await takeLock(trx, 'keys');
    await untieKeys(trx, { projectId: erasure.project_id, pseudonym: erasure.pseudonym }); // of a key created meanwhile
    const counts = await eraseNames(trx, erasure.project_id);
    const api_key = await deleteKeys(trx, await listKeysOfProject(trx, erasure.project_id));
    await count(pass, { ...counts, api_key }, trx);
    await finishErasure(trx, erasure);
  });
  pass.logger.info({ pseudonym: erasure.pseudonym, deleted: pass.counts }, 'a project was erased');
  return true;
}
