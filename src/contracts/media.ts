/**
 * `media://<job_id>/<file>`: an own grammar, because `new URL()` folds `..` silently.
 * At most 8 segments of letters, digits, `.`, `_` and `-`; no `.` or `..`.
 */
import { z } from 'zod';
import { Instant, JsonObject } from './primitives.ts';

/** Neither `.` nor `..`; without look-ahead, which not every reader of a JSON Schema knows. */
const segment =
  '(?:[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}|\\.[A-Za-z0-9_-][A-Za-z0-9._-]{0,126}|\\.\\.[A-Za-z0-9._-]{1,126})';
const wholeSegment = new RegExp(`^${segment}$`);

/** Of a path below `/v1/media/`: the job, and the file in it. */
export const MediaJobId = z.string().regex(wholeSegment);
export const MediaFile = z
  .string()
  .regex(new RegExp(`^${segment}(?:/${segment}){0,6}$`), {
    error: 'a file is one to seven segments of letters, digits, dots, _ and -, none of them . or ..',
  })
  .meta({ description: 'One to seven segments joined by /, which is not encoded.' });

export interface MediaPath {
  readonly job_id: string;
  /** One to seven segments joined by `/`. */
  readonly file: string;
}

/** Reads `media://job/a/b.mp4`; null when it is anything else. */
export function parseMediaReference(text: string): MediaPath | null {
  return text.startsWith('media://') ? parseMediaPath(text.slice('media://'.length)) : null;
}

/** Reads `job/a/b.mp4`, the path below `/v1/media/`; null when it is anything else. */
export function parseMediaPath(text: string): MediaPath | null {
  const segments = text.split('/');
  if (segments.length < 2 || segments.length > 8) return null;
  if (!segments.every((part) => wholeSegment.test(part))) return null;
  const [job_id = '', ...rest] = segments;
  return { job_id, file: rest.join('/') };
}

export function formatMediaReference({ job_id, file }: MediaPath): string {
  return `media://${job_id}/${file}`;
}

export const MediaObject = z
  .strictObject({
    reference: z.string(),
    size: z.number().int(),
    content_type: z.string(),
    sha256: z.string(),
  })
  .meta({ id: 'MediaObject' });
export type MediaObject = z.infer<typeof MediaObject>;

export const JobRequest = z.strictObject({ job: JsonObject }).meta({ id: 'JobRequest' });
export const JobCreated = z.strictObject({ job_id: z.string() }).meta({ id: 'JobCreated' });

export const Job = z
  .strictObject({
    job_id: z.string(),
    job: JsonObject,
    runs: z.array(z.strictObject({ run_id: z.string(), state: z.string() })),
    artifacts: z.array(MediaObject),
    created_at: Instant,
  })
  .meta({ id: 'Job' });
export type Job = z.infer<typeof Job>;
