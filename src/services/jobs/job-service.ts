/** Jobs: a submitted input and the media namespace `media://<job_id>/` that belongs to it. */
import { formatMediaReference, type Job } from '../../contracts/media.ts';
import type { JsonObject } from '../../contracts/primitives.ts';
import type { Db } from '../../db/connect.ts';
import { findJob, insertJob, jobExists, listRunsOfJob } from '../../db/run/job.ts';
import { AppError } from '../../errors/app-error.ts';
import { newId } from '../ids.ts';
import type { MediaLibrary } from '../media/media-library.ts';
import { bindJobMedia } from './bind-job-media.ts';
import { type OwnMedia, refuseForeign } from './own-media.ts';

const shownRuns = 1_000;

export interface JobServiceDependencies {
  readonly db: Db;
  readonly media: MediaLibrary;
  readonly ownMedia: Pick<OwnMedia, 'findForeign'>;
}

export function createJobService({ db, media, ownMedia }: JobServiceDependencies) {
  return {
    /** @throws AppError `media_unknown` */
    create: async (projectId: string, job: JsonObject): Promise<{ job_id: string }> => {
      const job_id = newId('job');
      const body = bindJobMedia(job, job_id);
      const foreign = await ownMedia.findForeign(projectId, body, job_id);
      if (foreign !== null) throw refuseForeign(foreign, '/job');
      await insertJob(db, { project_id: projectId, job_id }, body);
      return { job_id };
    },

    /** @throws AppError `not_found`, also when the job is another project's */
    get: async (projectId: string, jobId: string): Promise<Job> => {
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
    },

    exists: (projectId: string, jobId: string): Promise<boolean> =>
      jobExists(db, { project_id: projectId, job_id: jobId }),
  };
}

export type JobService = ReturnType<typeof createJobService>;
