/**
 * Bytes that pass through this process into a bucket. All of a body is here before any of it is sent, so a bucket
 * sees what is right and complete alone, and memory is held for as long as the bucket takes, never for as long as
 * a sender does.
 */
import type { Readable } from 'node:stream';
import type { MediaPath } from '@capstan/core/contracts/media';
import { AppError } from '@capstan/core/errors/app-error';
import { type Spooled, spool } from './guarded-files.ts';
import { alreadyThere, type DescribedObject, digestMismatch, type PutOptions } from './media-store.ts';
import { type Bucket, isConditionFailed } from './s3-bucket.ts';

/** A part is held in memory until it is sent. */
const partBytes = 8 * 1_048_576;
/** S3 takes no more. */
const mostParts = 10_000;
/** Parts on their way at once; one more is being read. */
const partsAtOnce = 2;

/** The uploads of a process hold so much together. */
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

interface UploadGate {
  /** Now, of those that are being sent. */
  readonly heldBytes: () => number;
  /**
   * @param bytes what it holds; one that holds more than all may goes by itself
   * @throws AppError `unavailable` when there is no room for it in time
   */
  pass<Result>(bytes: number, upload: () => Promise<Result>): Promise<Result>;
}

interface WaitingUpload {
  readonly bytes: number;
  readonly begin: () => void;
}

function noRoom(seen: string): AppError {
  return new AppError('unavailable', `uploads into the media store ${seen} more`, { retryAfterS: 5 });
}

interface GateLimits {
  readonly mostBytes: number;
  /** How long one waits for its turn; they go in their order. */
  readonly waitMs: number;
}

function createRoom({ mostBytes, waitMs }: GateLimits) {
  const waiting: WaitingUpload[] = [];
  let held = 0;
  const admit = (): void => {
    for (let next = waiting[0]; next !== undefined && held + next.bytes <= mostBytes; next = waiting[0]) {
      waiting.shift();
      held += next.bytes;
      next.begin();
    }
  };
  const enter = (bytes: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        waiting.splice(waiting.indexOf(own), 1);
        reject(
          noRoom(`hold ${held} of ${mostBytes} bytes here, and within ${waitMs} ms had no room for ${bytes}`),
        );
        admit();
      }, waitMs);
      const begin = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const own: WaitingUpload = { bytes, begin };
      waiting.push(own);
      admit();
    });
  const leave = (bytes: number): void => {
    held -= bytes;
    admit();
  };
  return { enter, leave, heldBytes: () => held };
}

/** How many bytes of uploads this process holds in memory while it sends them. */
export function createUploadGate(limits: GateLimits): UploadGate {
  const { enter, leave, heldBytes } = createRoom(limits);
  return {
    heldBytes,
    pass: async (bytes, upload) => {
      const own = Math.min(bytes, limits.mostBytes);
      await enter(own);
      try {
        return await upload();
      } finally {
        leave(own);
      }
    },
  };
}
