/**
 * A media store in a bucket: `<prefix>/<job_id>/<file>`. S3 makes an object visible whole or not at all; what it cannot
 * keep is an old state for somebody who reads it while it is replaced: such a reader is told to ask again.
 */
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { MediaPath } from '../../contracts/media.ts';
import { AppError } from '../../errors/app-error.ts';
import { digestMismatch } from './media-faults.ts';
import type { CopyOrder, DescribedObject, MediaStore } from './media-store.ts';
import { type Bucket, openBucket } from './s3-bucket.ts';
import { createDirectAccess } from './s3-direct.ts';
import { parseS3Url } from './s3-location.ts';
import { loadS3Packages } from './s3-packages.ts';
import { headObject, listObjects, openObject } from './s3-read.ts';
import { removeJob, removeObject, sweepUploads } from './s3-removal.ts';
import { mostHeldBytes, type UploadWay, upload } from './s3-upload.ts';
import { createUploadGate } from './upload-gate.ts';

/** By way of this process, which is how its digest is known. */
async function copy(
  way: UploadWay,
  from: MediaPath,
  { to, sha256 }: CopyOrder,
): Promise<DescribedObject | null> {
  const { bucket } = way;
  bucket.at(to); // or throws
  const opened = await openObject(bucket, from);
  if (opened === null || (opened.object.sha256 ?? sha256) !== sha256) return null;
  const { size, content_type: contentType } = opened.object;
  const body = await opened.read();
  try {
    return await upload(way, to, { body, contentType, limitBytes: size, expected: sha256 });
  } catch (error) {
    if (error instanceof AppError && error.code === 'digest_mismatch') return null;
    throw error;
  } finally {
    body.destroy();
  }
}

/** Of probes that go on beside this one, or were killed. */
const probedFiles = 1_000;

/** The bucket may be there and its keys right, and still not all of this be allowed. */
async function probe(way: UploadWay): Promise<void> {
  const { bucket } = way;
  const { s3 } = bucket.packages;
  await bucket.client.send(new s3.HeadBucketCommand({ Bucket: bucket.below().Bucket }));
  const path = { job_id: 'capstan-probe', file: randomUUID() };
  const { sha256 } = await upload(way, path, {
    body: Readable.from([Buffer.from('probe')]),
    contentType: 'text/plain',
    limitBytes: 5,
  });
  const { files } = await listObjects(bucket, path.job_id, probedFiles);
  const seen = files.some(({ file }) => file === path.file);
  await removeObject(bucket, path, undefined);
  if (!seen) throw digestMismatch(path, { seen: 'nothing', expected: sha256 });
}

/** Shorter than a connection may be silent. */
const waitMs = 20_000;

function createS3Store(bucket: Bucket): MediaStore {
  const { reach } = bucket;
  const way: UploadWay = { bucket, gate: createUploadGate({ mostBytes: mostHeldBytes, waitMs }) };
  return {
    name: bucket.name,
    put: (path, body, options) => upload(way, path, { body, ...options }),
    copy: (from, to, sha256) => reach(() => copy(way, from, { to, sha256 }), to),
    exists: (path) => reach(async () => (await headObject(bucket, path)) !== null),
    head: (path) => reach(() => headObject(bucket, path)),
    open: (path) => reach(() => openObject(bucket, path)),
    delete: (path, etag) => reach(() => removeObject(bucket, path, etag)),
    deleteJob: (jobId) => reach(() => removeJob(bucket, jobId)),
    list: (jobId, most) => reach(() => listObjects(bucket, jobId, most)),
    sweep: (olderThanMs) => reach(() => sweepUploads(bucket, olderThanMs)),
    probe: () => reach(() => probe(way)),
    direct: createDirectAccess(bucket),
  };
}

/** @throws Error for what is no such address, or when the packages are missing */
export async function openS3MediaStore(mediaUrl: string): Promise<MediaStore> {
  const location = parseS3Url(mediaUrl);
  return createS3Store(openBucket(await loadS3Packages(), location));
}
