/** Jobs as users see them: stored, and shown with their runs and files. */

import { formatMediaReference, type Job } from '@capstan/core/contracts/media';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { AppError } from '@capstan/core/errors/app-error';
import type { Ctx } from '../../context.ts';
import { findJob, insertJob, jobExists, listRunsOfJob } from '../../db/run/job.ts';
import { newId } from '../../parts/ids.ts';
import { bindJobMedia, refuseForeign } from '../../parts/media/own-media.ts';

const shownRuns = 1_000;

/** @throws AppError `media_unknown` */
export async function createJob(
  { db, ownMedia }: Pick<Ctx, 'db' | 'ownMedia'>,
  projectId: string,
  job: JsonObject,
): Promise<{ job_id: string }> {
  const job_id = newId('job');
  const body = bindJobMedia(job, job_id);
  const foreign = await ownMedia.findForeign(projectId, body, job_id);
  if (foreign !== null) throw refuseForeign(foreign, '/job');
  await insertJob(db, { project_id: projectId, job_id }, body);
  return { job_id };
}

/** @throws AppError `not_found`, also when the job is another project's */
export async function showJob(
  { db, media }: Pick<Ctx, 'db' | 'media'>,
  projectId: string,
  jobId: string,
): Promise<Job> {
  const found = await findJob(db, { project_id: projectId, job_id: jobId });
  if (found === null) throw new AppError('not_found', `no job ${jobId}`);
  const [runs, { files, hasMore }] = await Promise.all([
    listRunsOfJob(db, jobId, shownRuns),
    media.list(jobId),
  ]);
  const artifacts = files.map(({ file, object: { size, content_type, sha256 } }) => ({
    reference: formatMediaReference({ job_id: jobId, file }),
    size,
    content_type,
    sha256,
  }));
  return {
    job_id: jobId,
    job: found.body,
    runs,
    artifacts,
    has_more_artifacts: hasMore,
    created_at: found.created_at.toISOString(),
  };
}

/** @throws AppError `not_found` when the project has no such job */
export async function requireJob({ db }: Pick<Ctx, 'db'>, projectId: string, jobId: string): Promise<void> {
  if (await jobExists(db, { project_id: projectId, job_id: jobId })) return;
  throw new AppError('not_found', `no job ${jobId}`);
}
