/** Jobs that no run is left of, with their files: the files first (P3), so that what was begun is found again. */
import { deleteJobs, listJobLines, listRunlessJobs, lockUnneededJobs } from '../../db/retention/old-jobs.ts';
import { boundsOfIds } from '../ids.ts';
import { count, type PurgeCounts, type PurgePass } from './purge-pass.ts';

/** Their rows are held while their files go, one after the other of a job. */
const jobsAtOnce = 50;

/** @throws what kept the files of a job, when all other jobs were tried; at once where it kept those of all at once */
export async function purgeJobs(pass: PurgePass, createdBefore: Date): Promise<void> {
  const { db, isTrial } = pass;
  const upTo = boundsOfIds('job', createdBefore, createdBefore)[1];
  const faults: unknown[] = [];
  let after = '';
  // A batch of runs leaves twenty batches of jobs.
  for (let batch = 0; batch < pass.mostBatches * 20 && !pass.isStopping(); batch++) {
    const limit = jobsAtOnce;
    const jobIds = await listRunlessJobs(db, { createdBefore, upTo, after, limit, isTrial });
    const last = jobIds.at(-1);
    if (last === undefined) break;
    const { counts, kept } = await purgeSome(pass, jobIds, createdBefore);
    count(pass.counts, counts);
    faults.push(...kept);
    if (jobIds.length < limit || (kept.length > 0 && counts.job === 0)) break;
    after = last;
  }
  if (faults.length > 0) throw faults[0];
}

interface PurgedJobs {
  readonly counts: PurgeCounts;
  /** Why files could not be deleted. */
  readonly kept: readonly unknown[];
}

function purgeSome(
  { db, media, exportTo, isTrial }: PurgePass,
  jobIds: readonly string[],
  createdBefore: Date,
): Promise<PurgedJobs> {
  return db.transaction(async (trx): Promise<PurgedJobs> => {
    const going = await lockUnneededJobs(trx, jobIds, { isTrial, createdBefore });
    if (isTrial || going.length === 0) return { counts: { job: going.length }, kept: [] };
    if (exportTo !== null) await exportTo.write(await listJobLines(trx, going));
    const ends = await Promise.allSettled(going.map((jobId) => media.deleteJob(jobId)));
    const gone = going.filter((_, n) => ends[n]?.status === 'fulfilled');
    const media_file = ends.reduce((sum, end) => sum + (end.status === 'fulfilled' ? end.value : 0), 0);
    const kept = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []));
    return { counts: { job: await deleteJobs(trx, gone), media_file }, kept };
  });
}
