/**
 * `media://<job_id>/<file>` has a grammar of its own, because `new URL()` resolves `..` silently: at most 8 segments of
 * letters, digits, `.`, `_` and `-`; no `.` or `..`.
 */
import { z } from 'zod';
import { Instant, JsonObject } from './primitives.ts';

/** Neither `.` nor `..`; without look-ahead, which some readers of JSON Schema do not support. */
const segment =
  '(?:[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}|\\.[A-Za-z0-9_-][A-Za-z0-9._-]{0,126}|\\.\\.[A-Za-z0-9._-]{1,126})';
const longestSegment = 128;
const wholeSegment = new RegExp(`^${segment}$`);

/** The parts of a path below `/v1/media/`: the job, and the file in it. */
export const MediaJobId = z.string().regex(wholeSegment);
export const MediaFile = z
  .string()
  .regex(new RegExp(`^${segment}(?:/${segment}){0,6}$`), {
    error: ({ input }) => explainMediaPath(`job/${String(input)}`),
  })
  .meta({ description: 'One to seven segments joined by /. Do not encode the /.' });

export interface MediaPath {
  readonly job_id: string;
  /** One to seven segments joined by `/`. */
  readonly file: string;
}

/** Parses `media://job/a/b.mp4`; null for any other text. */
export function parseMediaReference(text: string): MediaPath | null {
  return text.startsWith('media://') ? parseMediaPath(text.slice('media://'.length)) : null;
}

/** Parses `job/a/b.mp4`, the path below `/v1/media/`; null for any other text. */
export function parseMediaPath(text: string): MediaPath | null {
  const segments = text.split('/');
  if (segments.length < 2 || segments.length > 8) return null;
  if (!segments.every((part) => wholeSegment.test(part))) return null;
  const [job_id = '', ...rest] = segments;
  return { job_id, file: rest.join('/') };
}

/** What is wrong with a text that `parseMediaPath` refuses. */
export function explainMediaPath(text: string): string {
  const segments = text.split('/');
  if (segments.length < 2 || segments.length > 8)
    return `a media path is <job_id>/ and one to seven segments, not ${segments.length - 1}`;
  const wrong = segments.find((part) => !wholeSegment.test(part)) ?? '';
  const shown = JSON.stringify(wrong.slice(0, 40));
  if (wrong === '') return 'a media path has an empty segment: a / at its end, or two together';
  if (wrong === '.' || wrong === '..') return `a media path may not hold the segment ${shown}`;
  if (wrong.length > longestSegment)
    return `a segment of a media path has at most ${longestSegment} characters; ${shown}… has ${wrong.length}`;
  return `a media path is made of letters, digits, dots, _ and -, which ${shown} is not`;
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

export const UploadRequest = z
  .strictObject({
    size: z.number().int().min(0).max(Number.MAX_SAFE_INTEGER),
    sha256: z.string().regex(/^[0-9a-f]{64}$/, { error: 'a SHA-256 is 64 small hex digits' }),
    content_type: z
      .string()
      .regex(/^[!-~][ -~]{0,254}$/)
      .default('application/octet-stream'),
  })
  .meta({ id: 'UploadRequest' });
export type UploadRequest = z.infer<typeof UploadRequest>;

const SendHeaders = z
  .record(z.string(), z.string())
  .meta({ description: 'Send them unchanged, and no key with them.' });
const SendUrl = z
  .string()
  .meta({ description: 'The address for PUT. Without a host, it is a path of this API.' });

const WholeUpload = z
  .strictObject({ url: SendUrl, headers: SendHeaders, expires_at: Instant })
  .meta({ id: 'WholeUpload' });
const PartedUpload = z
  .strictObject({
    parts: z.array(z.strictObject({ url: SendUrl, headers: SendHeaders })).meta({
      description: 'The parts in order are the file. The headers of each hold its length.',
    }),
    complete_url: z.string().meta({ description: 'The address to POST to after the last part.' }),
    expires_at: Instant,
  })
  .meta({ id: 'PartedUpload' });

/** The answer to an announced upload: the requests to send. */
export const UploadTicket = z.union([WholeUpload, PartedUpload]).meta({ id: 'UploadTicket' });
export type UploadTicket = z.infer<typeof UploadTicket>;

export const JobRequest = z.strictObject({ job: JsonObject }).meta({ id: 'JobRequest' });
export const JobCreated = z.strictObject({ job_id: z.string() }).meta({ id: 'JobCreated' });

export const Job = z
  .strictObject({
    job_id: z.string(),
    job: JsonObject,
    runs: z.array(z.strictObject({ run_id: z.string(), state: z.string() })),
    artifacts: z.array(MediaObject).meta({ description: 'By name; at most a thousand.' }),
    has_more_artifacts: z
      .boolean()
      .meta({ description: 'There are more files; their names may sort between these.' }),
    created_at: Instant,
  })
  .meta({ id: 'Job' });
export type Job = z.infer<typeof Job>;
