/**
 * Jobs without a run, with their files. Rows are deleted in a short transaction, with a mark that stays until the store
 * has deleted the files (P3): no transaction waits for a store, unfinished work is found again, and nothing new names
 * the job.
 */
import {
  forgetLeavingJobs,
  type KnownNames,
  leaveJobs,
  listJobLines,
  listLeavingJobs,
  listNames,
  listRunlessJobs,
  lockUnneededJobs,
  type OwnedJob,
  readClock,
} from '../../db/deletion/old-jobs.ts';
import { boundsOfIds } from '../../parts/ids.ts';
import { count, type PurgePass } from './deletion-pass.ts';

/** Jobs whose files are deleted in parallel. */
const jobsAtOnce = 50;
/** Any transaction that began earlier is over by then. */
const longestTransactionMs = 60_000;
/** Newer references are read again while jobs are locked, so they should be few. */
const mostAgeMs = 2 * longestTransactionMs;

type Names = Map<string, KnownNames>;

/** @throws the fault of a job's files, after all other jobs were tried; at once if all jobs of a batch failed */
export async function purgeJobs(pass: PurgePass, createdBefore: Date): Promise<void> {
  const { db, isTrial } = pass;
  const upTo = boundsOfIds('job', createdBefore, createdBefore)[1];
  const names: Names = new Map();
  const { faults, isAway } = await finishAll(pass);
  let after = isAway ? undefined : '';
  // A batch of runs leaves twenty batches of jobs.
  for (let batch = 0; after !== undefined && batch < pass.mostBatches * 20 && !pass.isStopping(); batch++) {
    const limit = jobsAtOnce;
    const jobs: readonly OwnedJob[] = await listRunlessJobs(db, {
      createdBefore,
      upTo,
      after,
      limit,
      isTrial,
    });
    faults.push(...(await readAllNames(pass, names, jobs)));
    const going = await letGo(pass, { jobs, createdBefore, names });
    const kept = isTrial ? [] : await deleteFiles(pass, going);
    faults.push(...kept);
    const isOver = jobs.length < limit || (kept.length > 0 && kept.length === going.length);
    after = isOver ? undefined : jobs.at(-1)?.job_id;
  }
  if (faults.length > 0) throw faults[0];
}

/**
 * Deletes files of jobs that are deleted. @throws the fault of some, after all were tried, or as soon as a whole batch
 * failed
 */
export async function finishLeavingJobs(pass: PurgePass): Promise<void> {
  const { faults } = await finishAll(pass);
  if (faults.length > 0) throw faults[0];
}

/** `isAway`: no file of a whole batch could be deleted, so no more jobs should be. */
async function finishAll(pass: PurgePass): Promise<{ faults: unknown[]; isAway: boolean }> {
  const { db, isTrial, isStopping } = pass;
  const faults: unknown[] = [];
  let after: string | undefined = isTrial ? undefined : '';
  while (after !== undefined && !isStopping()) {
    const going: readonly string[] = await listLeavingJobs(db, { after, limit: jobsAtOnce });
    const kept = await deleteFiles(pass, going);
    faults.push(...kept);
    if (kept.length === jobsAtOnce) return { faults, isAway: true };
    after = going.length < jobsAtOnce ? undefined : going.at(-1);
  }
  return { faults, isAway: false };
}

/** @returns why files could not be deleted */
async function deleteFiles(pass: PurgePass, jobIds: readonly string[]): Promise<unknown[]> {
  const { db, media } = pass;
  if (jobIds.length === 0) return [];
  const ends = await Promise.allSettled(jobIds.map((jobId) => media.deleteJob(jobId)));
  await forgetLeavingJobs(
    db,
    jobIds.filter((_, n) => ends[n]?.status === 'fulfilled'),
  );
  const media_file = ends.reduce((sum, end) => sum + (end.status === 'fulfilled' ? end.value : 0), 0);
  await count(pass, { media_file });
  return ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []));
}

/** Reads the names in pages, without a lock. @returns faults: the jobs of a project whose names are unknown stay */
async function readAllNames(
  { db, isStopping }: PurgePass,
  names: Names,
  jobs: readonly OwnedJob[],
): Promise<unknown[]> {
  const faults: unknown[] = [];
  for (const projectId of new Set(jobs.map(({ project_id }) => project_id))) {
    const now = await readClock(db);
    const before = names.get(projectId);
    if (before !== undefined && now.getTime() - before.since.getTime() < mostAgeMs) continue;
    names.delete(projectId);
    try {
      const found = await listNames(db, { projectId, since: before?.since ?? null }, isStopping);
      const since = new Date(now.getTime() - longestTransactionMs);
      if (found !== null)
        names.set(projectId, { named: new Set([...(before?.named ?? []), ...found]), since });
    } catch (fault) {
      faults.push(fault);
    }
  }
  return faults;
}

interface OldJobs {
  readonly jobs: readonly OwnedJob[];
  readonly createdBefore: Date;
  readonly names: Names;
}

/** @returns the jobs whose rows were deleted, or would be */
function letGo(pass: PurgePass, { jobs, createdBefore, names }: OldJobs): Promise<readonly string[]> {
  const { db, exportTo, isTrial } = pass;
  return db.transaction(async (trx) => {
    const going = await lockUnneededJobs(trx, jobs, { isTrial, createdBefore, known: names });
    if (!isTrial && going.length > 0) {
      if (exportTo !== null) await exportTo.write(await listJobLines(trx, going));
      await leaveJobs(trx, going);
    }
    await count(pass, { job: going.length });
    return going;
  });
}
