/**
 * Jobs: a submitted input and the media namespace `media://<job_id>/` that belongs to it. In a job,
 * `media://job/<file>` is the job's own namespace, whose id the author cannot know yet. It is replaced once, when the
 * job is created; everything later sees `media://<job_id>/<file>`.
 */

import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { AppError } from '@capstan/core/errors/app-error';
import { isPlainObject } from '@capstan/core/json/values';
import { findMediaJobs, type MediaMention } from '@capstan/core/media';
import { LRUCache } from 'lru-cache';
import type { Db } from '../../db/connect.ts';
import { listOwnedJobs } from '../../db/run/job.ts';

// Files belong to jobs, and jobs to projects. A submission, and the input of any call, may name files of the project's
// own jobs only. An instance may have one key for all files, or the folder itself, so no later check can find out whose
// file it reads or replaces. A job of another project looks like a missing one.

export interface OwnMedia {
  /**
   * @param ownJobId a job that is known to be the project's
   * @returns the first mention of a file that is not the project's
   */
  findForeign(projectId: string, value: Json, ownJobId?: string): Promise<MediaMention | null>;
  /** Like `findForeign`, for mentions that were found before. */
  judge(projectId: string, mentions: ReadonlyMap<string, MediaMention>): Promise<MediaMention | null>;
}

const maxKnown = 10_000;

export function createOwnMedia(db: Db): OwnMedia {
  /** A job never changes its project. */
  const owned = new LRUCache<string, true>({ max: maxKnown });
  const nameOf = (projectId: string, jobId: string): string => `${projectId}/${jobId}`;

  const judge: OwnMedia['judge'] = async (projectId, mentions) => {
    const unknown = [...mentions.keys()].filter((jobId) => !owned.has(nameOf(projectId, jobId)));
    if (unknown.length === 0) return null;
    const found = new Set(await listOwnedJobs(db, projectId, unknown));
    for (const jobId of found) owned.set(nameOf(projectId, jobId), true);
    const foreign = unknown.find((jobId) => !found.has(jobId));
    return foreign === undefined ? null : (mentions.get(foreign) ?? null);
  };

  return {
    judge,
    findForeign: async (projectId, value, ownJobId) => {
      const mentions = findMediaJobs(value);
      if (mentions.size === 0) return null;
      return judge(projectId, new Map([...mentions].filter(([jobId]) => jobId !== ownJobId)));
    },
  };
}

export function describeForeign({ reference }: MediaMention): string {
  return `${JSON.stringify(reference)} names a file of no job of this project`;
}

/** @param pointer to the value in the request */
export function refuseForeign(mention: MediaMention, pointer: string): AppError {
  const message = describeForeign(mention);
  const at = `${pointer}${mention.pointer}`;
  return new AppError('media_unknown', `${at}: ${message}`, {
    errors: [{ pointer: at, code: 'media_unknown', message }],
  });
}

/** A reference with this id means the job that holds it. */
export const ownNamespace = 'job';

const own = `media://${ownNamespace}/`;

/**
 * In a job, `media://job/<file>` is the job's own namespace, whose id the author cannot know yet. It is replaced once,
 * when the job is created; everything later sees `media://<job_id>/<file>`.
 */
export function bindJobMedia(job: JsonObject, jobId: string): JsonObject {
  return bind(job, jobId) as JsonObject;
}

function bind(value: Json, jobId: string): Json {
  if (typeof value === 'string') return bindText(value, jobId);
  if (Array.isArray(value)) return value.map((item) => bind(item as Json, jobId));
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [bindText(key, jobId), bind(item as Json, jobId)]),
  );
}

/** Also in the middle of a text, and in a key. */
function bindText(text: string, jobId: string): string {
  return text.replaceAll(own, `media://${jobId}/`);
}
