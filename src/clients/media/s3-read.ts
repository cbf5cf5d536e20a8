/** What a bucket says of its objects, and their bytes. */
import type { Readable } from 'node:stream';
import { formatMediaReference, type MediaPath } from '../../contracts/media.ts';
import { AppError } from '../../errors/app-error.ts';
import type { ByteSpan, ListedFiles, OpenObject, StoredObject } from './media-store.ts';
import type { Bucket } from './s3-bucket.ts';
import { isConditionFailed, isMissing } from './s3-faults.ts';
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
export async function* walkObjects(
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
