/**
 * Bytes that pass through this process into a bucket. All of a body is here before any of it is sent, so a bucket sees what
 * is right and complete alone, and memory is held for as long as the bucket takes, never for as long as a sender does.
 */
import type { Readable } from 'node:stream';
import type { MediaPath } from '../../contracts/media.ts';
import { AppError } from '../../errors/app-error.ts';
import { alreadyThere, digestMismatch } from './media-faults.ts';
import type { DescribedObject, PutOptions } from './media-store.ts';
import type { Bucket } from './s3-bucket.ts';
import { isConditionFailed } from './s3-faults.ts';
import { type Spooled, spool } from './spool.ts';
import type { UploadGate } from './upload-gate.ts';

/** A part is held in memory until it is sent. */
const partBytes = 8 * 1_048_576;
/** S3 takes no more. */
const mostParts = 10_000;
/** Parts on their way at once; one more is being read. */
const partsAtOnce = 2;

/** What uploads of a process may hold together. */
export const mostHeldBytes = 64 * 1_048_576;

export interface UploadWay {
  readonly bucket: Bucket;
  readonly gate: UploadGate;
}

interface S3Upload extends PutOptions {
  readonly body: Readable;
}

/** An upload that fails is aborted: of it nothing stays, or parts that the sweep finds. */
async function send({ bucket }: UploadWay, path: MediaPath, { file, ...given }: SpooledUpload) {
  const { Upload } = bucket.packages.storage;
  const body = file.read();
  const sending = new Upload({
    client: bucket.client,
    partSize: partSizeOf(file),
    queueSize: partsAtOnce,
    params: {
      ...bucket.at(path),
      ContentType: given.contentType,
      Body: body,
      ...(given.ifAbsent === true ? { IfNoneMatch: '*' } : {}),
    },
  });
  try {
    return await sending.done();
  } catch (error) {
    throw given.ifAbsent === true && isConditionFailed(error) ? alreadyThere(path) : error;
  } finally {
    body.destroy();
  }
}

interface SpooledUpload extends PutOptions {
  readonly file: Spooled;
}

function partSizeOf({ size }: Spooled): number {
  return Math.max(partBytes, Math.ceil(size / mostParts));
}

function heldBy(file: Spooled): number {
  return Math.min(file.size, (partsAtOnce + 1) * partSizeOf(file));
}

/** @throws AppError of `MediaStore.put` */
export async function upload(
  way: UploadWay,
  path: MediaPath,
  { body, ...given }: S3Upload,
): Promise<DescribedObject> {
  way.bucket.at(path); // or throws, before anything is read
  const file = await spool(body, given.limitBytes);
  try {
    const { size, sha256 } = file;
    if (given.expected !== undefined && sha256 !== given.expected)
      throw digestMismatch(path, { seen: sha256, expected: given.expected });
    const reach = () => way.bucket.reach(() => send(way, path, { file, ...given }), path);
    const done = await way.gate.pass(heldBy(file), reach);
    return {
      size,
      content_type: given.contentType,
      sha256,
      etag: requireEtag(done.ETag),
      modified_at: new Date(),
    };
  } finally {
    await file.close();
  }
}

export function requireEtag(etag: string | undefined): string {
  if (etag !== undefined) return etag.replaceAll('"', '');
  throw new AppError('unavailable', 'the media store does not say which state of an object it has stored');
}
