/** Jobs that no run is left of, with their files: the files first (P3), so that what was begun is found again. */
import { deleteJobs, listJobLines, listRunlessJobs, lockUnneededJobs } from '../../db/retention/old-jobs.ts';
import { boundsOfIds } from '../ids.ts';
import { count, type PurgeCounts, type PurgePass } from './purge-pass.ts';

/** Their rows are held while their files go, one after the other of a job. */
const jobsAtOnce = 50;

export async function purgeJobs(pass: PurgePass, createdBefore: Date): Promise<void> {
  const { db, isTrial } = pass;
  const upTo = boundsOfIds('job', createdBefore, createdBefore)[1];
  let after = '';
  // A batch of runs leaves twenty batches of jobs.
  for (let batch = 0; batch < pass.mostBatches * 20 && !pass.isStopping(); batch++) {
    const limit = jobsAtOnce;
    const jobIds = await listRunlessJobs(db, { createdBefore, upTo, after, limit, isTrial });
    const last = jobIds.at(-1);
    if (last === undefined) return;
    count(pass.counts, await purgeSome(pass, jobIds));
    if (jobIds.length < limit) return;
    after = last;
  }
}

function purgeSome({ db, media, exportTo, isTrial }: PurgePass, jobIds: readonly string[]) {
  return db.transaction(async (trx): Promise<PurgeCounts> => {
    const going = await lockUnneededJobs(trx, jobIds, { isTrial });
    if (isTrial || going.length === 0) return { job: going.length };
    if (exportTo !== null) await exportTo.write(await listJobLines(trx, going));
    const files = await Promise.all(going.map((jobId) => media.deleteJob(jobId)));
    return { job: await deleteJobs(trx, going), media_file: files.reduce((sum, n) => sum + n, 0) };
  });
}
