/** Which file a request means, and what is said of it. */
import {
  formatMediaReference,
  type MediaObject,
  type MediaPath,
  parseMediaPath,
} from '../contracts/media.ts';
import { AppError } from '../errors/app-error.ts';
import type { Caller } from '../services/access/caller.ts';
import type { Services } from '../services/services.ts';

export type OpenFile = NonNullable<Awaited<ReturnType<Services['media']['open']>>>;

export const mediaPrefix = '/v1/media/';

export interface FileFinder {
  /** @throws AppError `not_found` when the project has no such job */
  readonly locate: (caller: Caller, sentPath: string) => Promise<MediaPath>;
  /** To be closed, or read. @throws AppError `not_found` when the job has no such file */
  readonly open: (target: MediaPath) => Promise<OpenFile>;
}

function readPath(sentPath: string): MediaPath {
  const found = parseMediaPath(sentPath.slice(mediaPrefix.length));
  if (found !== null) return found;
  throw new AppError(
    'request_invalid',
    'a media path is <job_id>/ and one to seven segments of letters, digits, dots, _ and -, none of them . or ..',
  );
}

export function createFileFinder({ jobs, media }: Pick<Services, 'jobs' | 'media'>): FileFinder {
  return {
    locate: async ({ project_id }, sentPath) => {
      const target = readPath(sentPath);
      if (await jobs.exists(project_id, target.job_id)) return target;
      throw new AppError('not_found', `no job ${target.job_id}`);
    },
    open: async (target) => {
      const file = await media.open(target);
      if (file !== null) return file;
      throw new AppError('not_found', `${formatMediaReference(target)} does not exist`);
    },
  };
}

export function showMedia(reference: string, file: Omit<MediaObject, 'reference'>): MediaObject {
  const { size, content_type, sha256 } = file;
  return { reference, size, content_type, sha256 };
}
