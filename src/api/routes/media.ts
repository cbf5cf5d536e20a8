/**
 * Files of jobs, streamed both ways. The address is read as it was sent: a media path has no character that needs
 * percent-encoding, so an encoded one is no media path. Answers are sandboxed, because their type is the uploader's.
 */
import { z } from 'zod';
import { formatMediaReference, MediaObject, type MediaPath, parseMediaPath } from '../../contracts/media.ts';
import { AppError } from '../../errors/app-error.ts';
import type { Caller } from '../../services/access/caller.ts';
import type { Services } from '../../services/services.ts';
import { byteStream } from '../body-kind.ts';
import { type ByteRange, readRange } from '../byte-range.ts';
import type { ApiConfig } from '../limits.ts';
import { type AnswerHeaders, type Route, route } from '../route.ts';
import { MediaFilePath } from './parameters.ts';

type OpenFile = NonNullable<Awaited<ReturnType<Services['media']['open']>>>;
type StoredFile = OpenFile['object'];

const prefix = '/v1/media/';
const path = `${prefix}{job_id}/{+file}`;

const anyContent = { content: '*/*' } as const;

function readPath(sentPath: string): MediaPath {
  const found = parseMediaPath(sentPath.slice(prefix.length));
  if (found !== null) return found;
  throw new AppError(
    'request_invalid',
    'a media path is <job_id>/ and one to seven segments of letters, digits, dots, _ and -, none of them . or ..',
  );
}

function etagOf({ sha256 }: StoredFile): string {
  return `"${sha256}"`;
}

function headersOf(file: StoredFile): AnswerHeaders {
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

interface MediaAccess {
  readonly files: FileFinder;
  readonly media: Services['media'];
}

export function mediaRoutes(services: Pick<Services, 'jobs' | 'media'>, config: ApiConfig): Route[] {
  const access: MediaAccess = { files: createFileFinder(services), media: services.media };
  return [
    storeFile(access, config.MEDIA_LIMIT_BYTES),
    showFile(access),
    readFile(access),
    deleteFile(access),
  ];
}

interface FileFinder {
  /** @throws AppError `not_found` when the project has no such job */
  readonly locate: (caller: Caller, sentPath: string) => Promise<MediaPath>;
  /** To be closed, or read. @throws AppError `not_found` when the job has no such file either */
  readonly open: (caller: Caller, sentPath: string) => Promise<OpenFile>;
}

function createFileFinder({ jobs, media }: Pick<Services, 'jobs' | 'media'>): FileFinder {
  const locate: FileFinder['locate'] = async ({ project_id }, sentPath) => {
    const target = readPath(sentPath);
    if (await jobs.exists(project_id, target.job_id)) return target;
    throw new AppError('not_found', `no job ${target.job_id}`);
  };
  return {
    locate,
    open: async (caller, sentPath) => {
      const target = await locate(caller, sentPath);
      const file = await media.open(target);
      if (file !== null) return file;
      throw new AppError('not_found', `${formatMediaReference(target)} does not exist`);
    },
  };
}

function storeFile({ files, media }: MediaAccess, limitBytes: number): Route {
  return route({
    method: 'PUT',
    path,
    tag: 'media',
    summary: 'Store a file, replacing one of the same name as a whole',
    auth: 'key',
    scope: 'media:write',
    params: MediaFilePath,
    body: byteStream,
    responses: { 200: MediaObject, 201: MediaObject },
    errors: ['body_too_large', 'state_conflict'],
    handle: async ({ caller, path: sentPath, body, requestHeaders }) => {
      const target = await files.locate(caller, sentPath);
      if (Number(requestHeaders['content-length'] ?? 0) > limitBytes)
        throw new AppError('body_too_large', `the file has more than the allowed ${limitBytes} bytes`);
      const isNew = !(await media.exists(target));
      const file = await media.put(target, body.stream, { contentType: body.contentType, limitBytes });
      return {
        status: isNew ? 201 : 200,
        headers: { ETag: etagOf(file) },
        body: {
          reference: formatMediaReference(target),
          size: file.size,
          content_type: file.content_type,
          sha256: file.sha256,
        },
      };
    },
  });
}

function showFile({ files }: MediaAccess): Route {
  return route({
    method: 'HEAD',
    path,
    tag: 'media',
    summary: 'Show size, type and digest of a file',
    auth: 'key',
    scope: 'media:read',
    params: MediaFilePath,
    responses: { 200: 'empty' },
    handle: async ({ caller, path: sentPath }) => {
      const { object, close } = await files.open(caller, sentPath);
      await close();
      return { status: 200, headers: { ...headersOf(object), 'Content-Length': String(object.size) } };
    },
  });
}

/** Null: the whole file. @throws AppError `range_not_satisfiable` */
function chooseRange(file: StoredFile, headers: z.output<typeof ConditionalHeaders>): ByteRange | null {
  const mayRange = [undefined, etagOf(file)].includes(headers['if-range']);
  const range = mayRange ? readRange(headers.range, file.size) : null;
  if (range !== 'unsatisfiable') return range;
  throw new AppError('range_not_satisfiable', `${headers.range}; the file has ${file.size} bytes`);
}

async function answerUnchanged({ object, close }: OpenFile) {
  await close();
  return { status: 304 as const, headers: headersOf(object) };
}

/** Head and body are of the same opened file, whatever stands at its place when they are sent. */
function answerBytes({ object, read }: OpenFile, range: ByteRange | null) {
  if (range === null) {
    const whole = { ...headersOf(object), 'Content-Length': String(object.size) };
    return { status: 200 as const, headers: whole, body: read() };
  }
  const { start, end } = range;
  const part = {
    ...headersOf(object),
    'Content-Length': String(end - start + 1),
    'Content-Range': `bytes ${start}-${end}/${object.size}`,
  };
  return { status: 206 as const, headers: part, body: read(range) };
}

function readFile({ files }: MediaAccess): Route {
  return route({
    method: 'GET',
    path,
    tag: 'media',
    summary: 'Read a file, or one range of its bytes',
    auth: 'key',
    scope: 'media:read',
    params: MediaFilePath,
    query: MediaQuery,
    headers: ConditionalHeaders,
    responses: { 200: anyContent, 206: anyContent, 304: 'empty' },
    errors: ['range_not_satisfiable'],
    handle: async ({ caller, path: sentPath, query, headers, setHeader }) => {
      const file = await files.open(caller, sentPath);
      if (query.download === 'true') setHeader('Content-Disposition', attachmentOf(sentPath));
      try {
        if (isKnownToClient(file.object, headers['if-none-match'])) return await answerUnchanged(file);
        return answerBytes(file, chooseRange(file.object, headers));
      } catch (error) {
        await file.close();
        if (error instanceof AppError) setHeader('Content-Range', `bytes */${file.object.size}`);
        throw error;
      }
    },
  });
}

const MediaQuery = z.strictObject({
  download: z
    .enum(['true', 'false'])
    .default('false')
    .meta({ description: 'true: a browser stores it instead of showing it.' }),
});

/** Names of files are letters, digits, dots, dashes and underscores. */
function attachmentOf(sentPath: string): string {
  return `attachment; filename="${decodeURIComponent(sentPath.slice(sentPath.lastIndexOf('/') + 1))}"`;
}

function deleteFile({ files, media }: MediaAccess): Route {
  return route({
    method: 'DELETE',
    path,
    tag: 'media',
    summary: 'Delete a file',
    auth: 'key',
    scope: 'media:write',
    params: MediaFilePath,
    responses: { 204: 'empty' },
    handle: async ({ caller, path: sentPath }) => {
      const target = await files.locate(caller, sentPath);
      if (await media.delete(target)) return { status: 204 };
      throw new AppError('not_found', `${formatMediaReference(target)} does not exist`);
    },
  });
}
