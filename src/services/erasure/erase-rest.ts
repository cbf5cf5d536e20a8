/** What a project has besides work: files, what it has learnt and stored, its part of the books, its keys and its name. */
import { lockKeys } from '../../db/access/key-lineage.ts';
import { eraseVersions } from '../../db/erasure/erased-definitions.ts';
import { deleteKeys, listKeysOfProject, untieKeys } from '../../db/erasure/erased-keys.ts';
import {
  deletePlain,
  type ErasedBook,
  eraseBook,
  eraseNames,
  hasInstances,
  listErasableJobs,
  type PlainTable,
  plainTables,
} from '../../db/erasure/erased-rows.ts';
import { finishErasure } from '../../db/erasure/erasure.ts';
import { deleteJobs, forgetLeavingJobs, listLeavingJobs } from '../../db/retention/old-jobs.ts';
import type { RowCounts } from '../../db/retention/run-parts.ts';
import { count, type ErasurePass } from './erasure-pass.ts';

const jobsAtOnce = 50;
const rowsAtOnce = 1_000;
/** The clocks of the database and of the store may differ. */
const skewMs = 300_000;

/** Retention has let them go, and their files are still there. */
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

/** Files go before the row of their job (E3). */
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

async function emptyTable(pass: ErasurePass, table: PlainTable): Promise<void> {
  const { db, erasure } = pass;
  for (let rows = rowsAtOnce; rows === rowsAtOnce && !pass.isOver(); ) {
    rows = await deletePlain(db, table, { projectId: erasure.project_id, limit: rowsAtOnce });
    await count(pass, { [table]: rows });
  }
}

async function emptyPipelines(pass: ErasurePass): Promise<void> {
  const { db, erasure } = pass;
  let isMore = true;
  while (isMore && !pass.isOver()) {
    const gone: RowCounts = await db.transaction((trx) => eraseVersions(trx, erasure.project_id, rowsAtOnce));
    isMore = gone.pipeline_version === rowsAtOnce;
    await count(pass, gone);
  }
}

/** To its end: where it stopped is not kept. */
async function rewriteBook(pass: ErasurePass, book: ErasedBook, keys: readonly string[]): Promise<void> {
  const { db, erasure } = pass;
  let after: string | null = '0';
  while (after !== null && !pass.isStopping())
    after = await eraseBook(db, book, { ...erasure, keys, after, most: rowsAtOnce });
}

export async function eraseTables(pass: ErasurePass): Promise<boolean> {
  const { db, erasure } = pass;
  for (const table of plainTables) await emptyTable(pass, table);
  await emptyPipelines(pass);
  if (pass.isOver()) return false;
  const keys = await listKeysOfProject(db, erasure.project_id);
  await rewriteBook(pass, 'skill_version', keys);
  for (const table of ['skill', 'instance'] as const) await emptyTable(pass, table);
  return !pass.isOver() && !(await hasInstances(db, erasure.project_id));
}

export async function rewriteBooks(pass: ErasurePass): Promise<boolean> {
  const keys = await listKeysOfProject(pass.db, pass.erasure.project_id);
  for (const book of ['ledger_entry', 'audit'] as const) await rewriteBook(pass, book, keys);
  return !pass.isStopping();
}

/** What has come in the meantime is held by the project's row, which then does not go. */
export async function finish(pass: ErasurePass): Promise<boolean> {
  const { db, erasure } = pass;
  await db.transaction(async (trx) => {
    await lockKeys(trx);
    await untieKeys(trx, { projectId: erasure.project_id, pseudonym: erasure.pseudonym }); // of a key made meanwhile
    const counts = await eraseNames(trx, erasure.project_id);
    const api_key = await deleteKeys(trx, await listKeysOfProject(trx, erasure.project_id));
    await count(pass, { ...counts, api_key }, trx);
    await finishErasure(trx, erasure);
  });
  pass.logger.info({ pseudonym: erasure.pseudonym, deleted: pass.deleted }, 'a project was erased');
  return true;
}
