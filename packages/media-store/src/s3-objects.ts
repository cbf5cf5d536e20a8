/**
 * Reads the objects of a bucket, their facts and their bytes, and deletes: objects, whole jobs, and parts of uploads
 * that never ended.
 */
import type { Readable } from 'node:stream';
import type {
  ListMultipartUploadsCommand,
  ListMultipartUploadsCommandOutput,
  MultipartUpload,
} from '@aws-sdk/client-s3';
import { formatMediaReference, type MediaPath } from '@capstan/core/contracts/media';
import { AppError } from '@capstan/core/errors/app-error';
import type { ByteSpan, ListedFiles, OpenObject, StoredObject } from './media-store.ts';
import { type Bucket, isConditionFailed, isMissing, readFault } from './s3-bucket.ts';
import { requireEtag } from './s3-upload.ts';

/** S3 has one of an object that came in one piece with it; of parts it has another kind, which ends in their number. */
function readChecksum(base64: string | undefined): string | null {
  if (base64 === undefined || !/^[A-Za-z0-9+/]{43}=$/.test(base64)) return null;
  return Buffer.from(base64, 'base64').toString('hex');
}

export async function headObject(bucket: Bucket, path: MediaPath): Promise<StoredObject | null> {
  const { HeadObjectCommand } = bucket.packages.s3;
  const asked = new HeadObjectCommand({ ...bucket.at(path), ChecksumMode: 'ENABLED' });
  const found = await bucket.client.send(asked).catch((error: unknown) => {
    if (isMissing(error)) return null;
    throw error;
  });
  if (found === null) return null;
  return {
    size: found.ContentLength ?? 0,
    content_type: found.ContentType ?? 'application/octet-stream',
    sha256: readChecksum(found.ChecksumSHA256),
    etag: requireEtag(found.ETag),
    modified_at: found.LastModified ?? new Date(0),
  };
}

function replaced(path: MediaPath, cause: unknown): AppError {
  const message = `${formatMediaReference(path)} was replaced while it was read; ask again`;
  return new AppError('unavailable', message, { cause, retryAfterS: 0 });
}

interface WantedBytes {
  readonly object: StoredObject;
  readonly span: ByteSpan | undefined;
}

/** The size of the whole object that an answer is of: `bytes 0-4/140000` for a range. */
function wholeSize({
  ContentRange,
  ContentLength,
}: {
  ContentRange?: string;
  ContentLength?: number;
}): number {
  return ContentRange === undefined ? (ContentLength ?? 0) : Number(ContentRange.split('/')[1]);
}

async function readBytes(bucket: Bucket, path: MediaPath, { object, span }: WantedBytes): Promise<Readable> {
  const { GetObjectCommand } = bucket.packages.s3;
  const range = span === undefined ? {} : { Range: `bytes=${span.start}-${span.end}` };
  const asked = new GetObjectCommand({ ...bucket.at(path), IfMatch: `"${object.etag}"`, ...range });
  const answer = await bucket.client.send(asked).catch((error: unknown) => {
    throw isConditionFailed(error) || isMissing(error) ? replaced(path, error) : error;
  });
  const stream = answer.Body as Readable; // in Node
  // A store may compare the ETag, read the headers and open the file one after the other, and a writer come between.
  if (requireEtag(answer.ETag) === object.etag && wholeSize(answer) === object.size) return stream;
  stream.destroy();
  throw replaced(path, null);
}

/** Nothing is held open before it is read. */
export async function openObject(bucket: Bucket, path: MediaPath): Promise<OpenObject | null> {
  const object = await headObject(bucket, path);
  if (object === null) return null;
  return {
    object,
    read: (span) => bucket.reach(() => readBytes(bucket, path, { object, span })),
    close: async () => undefined,
  };
}

/** Objects below a job, by name, a page after the other; names outside of the media grammar are none. */
async function* walkObjects(
  bucket: Bucket,
  jobId: string,
): AsyncGenerator<{ readonly file: string; readonly etag: string }> {
  const { paginateListObjectsV2 } = bucket.packages.s3;
  for await (const { Contents = [] } of paginateListObjectsV2(
    { client: bucket.client },
    bucket.below(jobId),
  )) {
    for (const { Key = '', ETag } of Contents) {
      const path = bucket.pathOf(Key);
      if (path !== null) yield { file: path.file, etag: requireEtag(ETag) };
    }
  }
}

export async function listObjects(bucket: Bucket, jobId: string, most: number): Promise<ListedFiles> {
  const files: { file: string; etag: string }[] = [];
  for await (const object of walkObjects(bucket, jobId)) {
    if (files.length === most) return { files, hasMore: true };
    files.push(object);
  }
  return { files: files.sort((a, b) => (a.file < b.file ? -1 : 1)), hasMore: false };
}

async function removeState(bucket: Bucket, path: MediaPath, etag: string): Promise<boolean> {
  const { DeleteObjectCommand } = bucket.packages.s3;
  const target = bucket.at(path);
  try {
    await bucket.client.send(new DeleteObjectCommand({ ...target, IfMatch: `"${etag}"` }));
  } catch (error) {
    if (isConditionFailed(error) || isMissing(error)) return false;
    // Not every server knows the condition; its state was looked at a moment ago.
    if (readFault(error)?.status !== notImplemented) throw error;
    await bucket.client.send(new DeleteObjectCommand(target));
  }
  return true;
}

const notImplemented = 501;

/** S3 does not report whether there was anything. */
export async function removeObject(
  bucket: Bucket,
  path: MediaPath,
  etag: string | undefined,
): Promise<boolean> {
  const found = await headObject(bucket, path);
  if (found === null || (etag !== undefined && found.etag !== etag)) return false;
  if (etag !== undefined) return removeState(bucket, path, etag);
  const { DeleteObjectCommand } = bucket.packages.s3;
  await bucket.client.send(new DeleteObjectCommand(bucket.at(path)));
  return true;
}

/** As many as S3 takes in one request. */
const batch = 1_000;

export async function removeJob(bucket: Bucket, jobId: string): Promise<number> {
  const { DeleteObjectsCommand } = bucket.packages.s3;
  const files: { readonly file: string }[] = [];
  for await (const object of walkObjects(bucket, jobId)) files.push(object);
  const { Bucket } = bucket.below();
  for (let at = 0; at < files.length; at += batch) {
    const Objects = files
      .slice(at, at + batch)
      .map(({ file }) => ({ Key: bucket.at({ job_id: jobId, file }).Key }));
    const { Errors = [] } = await bucket.client.send(
      new DeleteObjectsCommand({ Bucket, Delete: { Objects, Quiet: true } }),
    );
    const [first] = Errors;
    if (first === undefined) continue;
    const message = `the media store ${bucket.name} kept ${Errors.length} of ${Objects.length} files of ${jobId}: ${first.Code} (${first.Message})`;
    throw new AppError('unavailable', message);
  }
  return files.length;
}

/** An upload in parts may take this long; the time of its last part is unknown. */
const longestUploadMs = 24 * 3_600_000;

interface UploadMarker {
  readonly KeyMarker?: string | undefined;
  readonly UploadIdMarker?: string | undefined;
}

async function* listUploads(bucket: Bucket): AsyncGenerator<MultipartUpload> {
  const { ListMultipartUploadsCommand } = bucket.packages.s3;
  let next: UploadMarker | null = {};
  while (next !== null) {
    const asked: ListMultipartUploadsCommand = new ListMultipartUploadsCommand({
      ...bucket.below(),
      ...next,
    });
    const page: ListMultipartUploadsCommandOutput = await bucket.client.send(asked);
    yield* page.Uploads ?? [];
    const { IsTruncated, NextKeyMarker: KeyMarker, NextUploadIdMarker: UploadIdMarker } = page;
    next = IsTruncated === true ? { KeyMarker, UploadIdMarker } : null;
  }
}

/** @returns how many were aborted */
export async function sweepUploads(bucket: Bucket, olderThanMs: number): Promise<number> {
  const { AbortMultipartUploadCommand } = bucket.packages.s3;
  const { Bucket } = bucket.below();
  const before = Date.now() - Math.max(olderThanMs, longestUploadMs);
  let aborted = 0;
  for await (const { Key = '', UploadId, Initiated } of listUploads(bucket)) {
    if (bucket.pathOf(Key) === null || Initiated === undefined || Initiated.getTime() > before) continue;
    await bucket.client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId }));
    aborted++;
  }
  return aborted;
}
