/** What goes out of a bucket: objects, whole jobs, and parts of uploads that never ended. */
import type {
  ListMultipartUploadsCommand,
  ListMultipartUploadsCommandOutput,
  MultipartUpload,
} from '@aws-sdk/client-s3';
import type { MediaPath } from '../../contracts/media.ts';
import { AppError } from '../../errors/app-error.ts';
import type { Bucket } from './s3-bucket.ts';
import { isConditionFailed, isMissing, readFault } from './s3-faults.ts';
import { headObject, walkObjects } from './s3-read.ts';

async function removeState(bucket: Bucket, path: MediaPath, etag: string): Promise<boolean> {
  const { DeleteObjectCommand } = bucket.packages.s3;
  const target = bucket.at(path);
  try {
    await bucket.client.send(new DeleteObjectCommand({ ...target, IfMatch: `"${etag}"` }));
  } catch (error) {
    if (isConditionFailed(error) || isMissing(error)) return false;
    // Not every server knows the condition; its state was looked at just now.
    if (readFault(error)?.status !== notImplemented) throw error;
    await bucket.client.send(new DeleteObjectCommand(target));
  }
  return true;
}

const notImplemented = 501;

/** S3 does not say whether there was anything. */
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

/** An upload in parts may take this long; how long ago its last part came is not told. */
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
