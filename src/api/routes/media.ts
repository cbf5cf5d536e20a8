/**
 * Files of jobs, streamed both ways. The address is read as it was sent: no character of a media path needs
 * percent-encoding, so an encoded path is invalid. Answers are sandboxed, because the uploader chose their type.
 */

import type { IncomingHttpHeaders } from 'node:http';
import {
  explainMediaPath,
  formatMediaReference,
  MediaObject,
  type MediaPath,
  parseMediaPath,
} from '@capstan/core/contracts/media';
import { AppError } from '@capstan/core/errors/app-error';
import { z } from 'zod';
import type { ServerCtx } from '../../context.ts';
import type { OpenMedia } from '../../parts/media/media-library.ts';
import type { Caller } from '../../use-cases/access/caller.ts';
import { requireJob } from '../../use-cases/jobs/jobs.ts';
import { byteStream } from '../input.ts';
import { MediaFilePath } from '../parameters.ts';
import { type Route, route } from '../route.ts';

export const mediaPrefix = '/v1/media/';

function readPath(sentPath: string): MediaPath {
  const sent = sentPath.slice(mediaPrefix.length);
  const found = parseMediaPath(sent);
  if (found !== null) return found;
  throw new AppError('request_invalid', explainMediaPath(sent));
}

/** @throws AppError `not_found` when the project has no such job */
export async function locateFile(
  ctx: ServerCtx,
  { project_id }: Pick<Caller, 'project_id'>,
  sentPath: string,
): Promise<MediaPath> {
  const target = readPath(sentPath);
  await requireJob(ctx, project_id, target.job_id);
  return target;
}

/** The caller closes or reads it. @throws AppError `not_found` when the job has no such file */
async function openFile({ media }: ServerCtx, target: MediaPath): Promise<OpenMedia> {
  const file = await media.open(target);
  if (file !== null) return file;
  throw new AppError('not_found', `${formatMediaReference(target)} does not exist`);
}

export function showMedia(reference: string, file: Omit<MediaObject, 'reference'>): MediaObject {
  const { size, content_type, sha256 } = file;
  return { reference, size, content_type, sha256 };
}

/** `Range` of RFC 9110 §14, one range of bytes. */
interface ByteRange {
  /** First and last byte, both inclusive. */
  readonly start: number;
  readonly end: number;
}

const form = /^bytes=(\d*)-(\d*)$/;

/** `null`: send the whole file (no range, several, or an unknown unit). */
function readRange(header: string | undefined, size: number): ByteRange | 'unsatisfiable' | null {
  const [, first = '', last = ''] = form.exec(header ?? '') ?? [];
  if (first === '' && last === '') return null;
  if (first === '') {
    const length = Math.min(Number(last), size);
    return length === 0 ? 'unsatisfiable' : { start: size - length, end: size - 1 };
  }
  const start = Number(first);
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1);
  if (last !== '' && Number(last) < start) return null;
  return start >= size ? 'unsatisfiable' : { start, end };
}

type StoredFile = OpenMedia['object'];

const path = `${mediaPrefix}{job_id}/{+file}`;

const anyContent = { content: '*/*' } as const;

function etagOf({ sha256 }: StoredFile): string {
  return `"${sha256}"`;
}

function headersOf(file: StoredFile) {
  return {
    'Content-Type': file.content_type,
    'Content-Security-Policy': "sandbox; default-src 'none'",
    'Accept-Ranges': 'bytes',
    ETag: etagOf(file),
    'Repr-Digest': `sha-256=:${Buffer.from(file.sha256, 'hex').toString('base64')}:`,
    'Last-Modified': file.modified_at.toUTCString(),
    'Cache-Control': 'private, no-cache',
  };
}

const ConditionalHeaders = z.object({
  range: z.string().max(1_000).optional(),
  'if-range': z.string().max(1_000).optional(),
  'if-none-match': z.string().max(1_000).optional(),
});

function isKnownToClient(file: StoredFile, ifNoneMatch: string | undefined): boolean {
  return ifNoneMatch?.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etagOf(file)) === true;
}

const NewFileHeaders = z.object({
  'if-none-match': z
    .literal('*', { error: 'the only condition of a file that is stored is If-None-Match: *' })
    .optional()
    .meta({ description: 'Stores the file only if none of this name exists.' }),
});

/** Null: the whole file. @throws AppError `range_not_satisfiable` */
function chooseRange(file: StoredFile, headers: z.output<typeof ConditionalHeaders>): ByteRange | null {
  const mayRange = [undefined, etagOf(file)].includes(headers['if-range']);
  const range = mayRange ? readRange(headers.range, file.size) : null;
  if (range !== 'unsatisfiable') return range;
  throw new AppError('range_not_satisfiable', `${headers.range}; the file has ${file.size} bytes`);
}

async function answerUnchanged({ object, close }: OpenMedia) {
  await close();
  return { status: 304 as const, headers: headersOf(object) };
}

/** Headers and body are from the same opened file, even if another file replaces it meanwhile. */
async function answerBytes({ object, read }: OpenMedia, range: ByteRange | null) {
  if (range === null) {
    const whole = { ...headersOf(object), 'Content-Length': String(object.size) };
    return { status: 200 as const, headers: whole, body: await read() };
  }
  const { start, end } = range;
  const part = {
    ...headersOf(object),
    'Content-Length': String(end - start + 1),
    'Content-Range': `bytes ${start}-${end}/${object.size}`,
  };
  return { status: 206 as const, headers: part, body: await read(range) };
}

/** The request comes from one of our pages, whose policy allows loading from this server only. */
function isOfPage(headers: IncomingHttpHeaders): boolean {
  return headers['sec-fetch-site'] === 'same-origin';
}

async function answerElsewhere({ object, close }: OpenMedia, address: string) {
  await close();
  const { ETag, 'Repr-Digest': digest, 'Last-Modified': modified } = headersOf(object);
  const facts = { ETag, 'Repr-Digest': digest, 'Last-Modified': modified };
  return { status: 307 as const, headers: { ...facts, Location: address, 'Cache-Control': 'no-store' } };
}

const MediaQuery = z.strictObject({
  download: z
    .enum(['true', 'false'])
    .default('false')
    .meta({ description: 'true: a browser downloads the file instead of showing it.' }),
});

/** Names of files consist of letters, digits, dots, dashes and underscores. */
function attachmentOf(sentPath: string): string {
  return `attachment; filename="${decodeURIComponent(sentPath.slice(sentPath.lastIndexOf('/') + 1))}"`;
}

export const mediaRoutes: readonly Route[] = [
  route(`PUT ${path}`, {
    operation: 'store_file',
    tag: 'media',
    summary: 'Store a file; it replaces a file of the same name',
    scope: 'media:write',
    params: MediaFilePath,
    headers: NewFileHeaders,
    body: byteStream,
    responses: { 200: MediaObject, 201: MediaObject },
    errors: ['body_too_large', 'media_quota', 'state_conflict', 'already_there'],
    handle: async (ctx, { caller, path: sentPath, headers, body, requestHeaders }) => {
      const limitBytes = ctx.config.MEDIA_LIMIT_BYTES;
      const target = await locateFile(ctx, caller, sentPath);
      const announced = Number(requestHeaders['content-length'] ?? 0);
      if (announced > limitBytes)
        throw new AppError('body_too_large', `the file has more than the allowed ${limitBytes} bytes`);
      const isNew = !(await ctx.media.exists(target));
      const ifAbsent = headers['if-none-match'] !== undefined;
      const options = { contentType: body.contentType, limitBytes: announced || limitBytes, ifAbsent };
      const file = await ctx.media.put(target, body.stream, options);
      return {
        status: isNew || ifAbsent ? 201 : 200,
        headers: { ETag: etagOf(file) },
        body: showMedia(formatMediaReference(target), file),
      };
    },
  }),
  route(`HEAD ${path}`, {
    operation: 'head_file',
    tag: 'media',
    summary: 'Show size, type and digest of a file',
    scope: 'media:read',
    params: MediaFilePath,
    responses: { 200: 'empty' },
    handle: async (ctx, { caller, path: sentPath }) => {
      const { object, close } = await openFile(ctx, await locateFile(ctx, caller, sentPath));
      await close();
      return { status: 200, headers: { ...headersOf(object), 'Content-Length': String(object.size) } };
    },
  }),
  route(`GET ${path}`, {
    operation: 'read_file',
    tag: 'media',
    summary: 'Read a file, or one range of its bytes; 307 redirects to the bucket',
    scope: 'media:read',
    params: MediaFilePath,
    query: MediaQuery,
    headers: ConditionalHeaders,
    responses: { 200: anyContent, 206: anyContent, 304: 'empty', 307: 'empty' },
    errors: ['range_not_satisfiable'],
    handle: async (ctx, { caller, path: sentPath, query, headers, requestHeaders, setHeader }) => {
      const target = await locateFile(ctx, caller, sentPath);
      const file = await openFile(ctx, target);
      const attachment = query.download === 'true' ? attachmentOf(sentPath) : undefined;
      try {
        if (isKnownToClient(file.object, headers['if-none-match'])) return await answerUnchanged(file);
        const range = chooseRange(file.object, headers);
        const address = isOfPage(requestHeaders) ? null : await ctx.directMedia.redirect(target, attachment);
        if (address !== null) return await answerElsewhere(file, address);
        if (attachment !== undefined) setHeader('Content-Disposition', attachment);
        return await answerBytes(file, range);
      } catch (error) {
        await file.close();
        if (error instanceof AppError) setHeader('Content-Range', `bytes */${file.object.size}`);
        throw error;
      }
    },
  }),
  route(`DELETE ${path}`, {
    operation: 'delete_file',
    tag: 'media',
    summary: 'Delete a file',
    scope: 'media:write',
    params: MediaFilePath,
    responses: { 204: 'empty' },
    handle: async (ctx, { caller, path: sentPath }) => {
      const target = await locateFile(ctx, caller, sentPath);
      if (await ctx.media.delete(target)) return { status: 204 };
      throw new AppError('not_found', `${formatMediaReference(target)} does not exist`);
    },
  }),
];
