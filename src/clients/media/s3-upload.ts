/** Bytes that pass through this process into a bucket, hashed on the way. */
import { createHash, type Hash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { MediaPath } from '../../contracts/media.ts';
import { AppError } from '../../errors/app-error.ts';
import { alreadyThere, digestMismatch, tooLarge } from './media-faults.ts';
import type { DescribedObject, PutOptions } from './media-store.ts';
import type { Bucket } from './s3-bucket.ts';
import { isConditionFailed } from './s3-faults.ts';

/** A part is held in memory until it is sent. */
const partBytes = 8 * 1_048_576;
/** S3 takes no more. */
const mostParts = 10_000;
/** Parts in memory at once. */
const partsAtOnce = 2;

interface Meter {
  readonly hash: Hash;
  bytes: number;
  /** Of a body that cannot be stored; lib-storage may hide it behind what follows from it. */
  fault: unknown;
}

interface S3Upload extends PutOptions {
  readonly body: Readable;
}

function requireExpected(path: MediaPath, { hash }: Meter, expected: string | undefined): void {
  if (expected === undefined) return;
  const seen = hash.copy().digest('hex');
  if (seen !== expected) throw digestMismatch(path, { seen, expected });
}

/** Judged before the last piece goes out, and left open on failure, so that a server can still answer its sender. */
async function* measure(path: MediaPath, { body, limitBytes, expected }: S3Upload, meter: Meter) {
  try {
    for await (const chunk of body.iterator({ destroyOnReturn: false })) {
      const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk);
      meter.bytes += bytes.length;
      if (meter.bytes > limitBytes) throw tooLarge(limitBytes);
      meter.hash.update(bytes);
      yield bytes;
    }
    requireExpected(path, meter, expected);
  } catch (error) {
    meter.fault = error;
    throw error;
  }
}

/** An upload that fails is aborted: of it nothing stays, or parts that the sweep finds. */
export async function upload(bucket: Bucket, path: MediaPath, given: S3Upload): Promise<DescribedObject> {
  const { contentType, limitBytes, ifAbsent } = given;
  const meter: Meter = { hash: createHash('sha256'), bytes: 0, fault: undefined };
  const target = bucket.at(path);
  const { Upload } = bucket.packages.storage;
  const sending = new Upload({
    client: bucket.client,
    partSize: Math.max(partBytes, Number.isFinite(limitBytes) ? Math.ceil(limitBytes / mostParts) : 0),
    queueSize: partsAtOnce,
    params: {
      ...target,
      ContentType: contentType,
      Body: Readable.from(measure(path, given, meter)),
      ...(ifAbsent === true ? { IfNoneMatch: '*' } : {}),
    },
  });
  const done = await sending.done().catch((error: unknown) => {
    if (meter.fault !== undefined) throw meter.fault;
    throw ifAbsent === true && isConditionFailed(error) ? alreadyThere(path) : error;
  });
  return {
    size: meter.bytes,
    content_type: contentType,
    sha256: meter.hash.digest('hex'),
    etag: requireEtag(done.ETag),
    modified_at: new Date(),
  };
}

export function requireEtag(etag: string | undefined): string {
  if (etag !== undefined) return etag.replaceAll('"', '');
  throw new AppError('unavailable', 'the media store does not say which state of an object it has stored');
}
