/**
 * A media store in a bucket: `<prefix>/<job_id>/<file>`. S3 makes an object visible whole or not at all, but keeps no
 * old state for a reader whose object is replaced meanwhile: such a reader is asked to try again.
 *
 * Clients read and write a bucket themselves by URLs, one request each. A URL signs the length, the type and, for an
 * object in one piece, the SHA-256.
 */

import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { ListPartsCommand, ListPartsCommandOutput, Part } from '@aws-sdk/client-s3';
import { formatMediaReference, type MediaPath } from '@capstan/core/contracts/media';
import { AppError } from '@capstan/core/errors/app-error';
import {
  type AllowedParts,
  type AllowedRequest,
  type CopyOrder,
  type DescribedObject,
  type DirectAccess,
  digestMismatch,
  type MediaStore,
  type UploadFacts,
} from './media-store.ts';
import { type Bucket, loadS3Packages, openBucket, parseS3Url, readFault } from './s3-bucket.ts';
import { headObject, listObjects, openObject, removeJob, removeObject, sweepUploads } from './s3-objects.ts';
import { createUploadGate, mostHeldBytes, requireEtag, type UploadWay, upload } from './s3-upload.ts';

const requestS = 3_600;
/** An upload in parts may take so long as a whole. */
const partsS = 12 * 3_600;

/** In the request, not in the URL: only there a server holds the body to it. */
const checksumHeader = 'x-amz-checksum-sha256';
const ofWhole = ['host', 'content-length', 'content-type', checksumHeader];
/** The SDK would sign a type that no client sends. */
const ofPart = ['host', 'content-length'];

function after(seconds: number): Date {
  return new Date(Date.now() + seconds * 1_000);
}

function signing(expiresIn: number, headers: readonly string[]) {
  return { expiresIn, signableHeaders: new Set(headers), unhoistableHeaders: new Set([checksumHeader]) };
}

async function allowRead(bucket: Bucket, path: MediaPath, attachment: string | undefined): Promise<string> {
  const { packages, presigning } = bucket;
  const asked = new packages.s3.GetObjectCommand({
    ...bucket.at(path),
    ...(attachment === undefined ? {} : { ResponseContentDisposition: attachment }),
  });
  return packages.presigner.getSignedUrl(presigning, asked, { expiresIn: requestS });
}

async function allowUpload(bucket: Bucket, path: MediaPath, { size, sha256, contentType }: UploadFacts) {
  const checksum = Buffer.from(sha256, 'hex').toString('base64');
  const command = new bucket.packages.s3.PutObjectCommand({
    ...bucket.at(path),
    ContentLength: size,
    ContentType: contentType,
    ChecksumSHA256: checksum,
  });
  const headers = { 'content-length': String(size), 'content-type': contentType, [checksumHeader]: checksum };
  const url = await bucket.packages.presigner.getSignedUrl(
    bucket.presigning,
    command,
    signing(requestS, ofWhole),
  );
  return { url, headers, expires_at: after(requestS) };
}

/** The last part holds what is left. */
function sizesOf(size: number, partBytes: number): number[] {
  const sizes: number[] = [];
  for (let at = 0; at < size; at += partBytes) sizes.push(Math.min(partBytes, size - at));
  return sizes;
}

async function allowParts(
  bucket: Bucket,
  path: MediaPath,
  { size, contentType, partBytes }: UploadFacts & { readonly partBytes: number },
): Promise<AllowedParts> {
  const { CreateMultipartUploadCommand, UploadPartCommand } = bucket.packages.s3;
  const { getSignedUrl } = bucket.packages.presigner;
  const target = bucket.at(path);
  const { UploadId } = await bucket.presigning.send(
    new CreateMultipartUploadCommand({ ...target, ContentType: contentType }),
  );
  if (UploadId === undefined) throw new AppError('unavailable', `${bucket.name} began no upload in parts`);
  const allow = async (bytes: number, index: number): Promise<AllowedRequest> => {
    const part = { ...target, UploadId, PartNumber: index + 1, ContentLength: bytes };
    const url = await getSignedUrl(bucket.presigning, new UploadPartCommand(part), signing(partsS, ofPart));
    return { url, headers: { 'content-length': String(bytes) } };
  };
  const parts = await Promise.all(sizesOf(size, partBytes).map(allow));
  return { upload_id: UploadId, parts, expires_at: after(partsS) };
}

interface SentPart {
  readonly PartNumber: number;
  readonly ETag: string;
  readonly size: number;
}

/** By hand: the SDK's paginator continues as long as there is a marker, which some servers give on the last page too. */
async function* listPages(bucket: Bucket, path: MediaPath, UploadId: string): AsyncGenerator<Part> {
  const { ListPartsCommand } = bucket.packages.s3;
  let PartNumberMarker: string | undefined;
  let isTruncated = true;
  while (isTruncated) {
    const asked: ListPartsCommand = new ListPartsCommand({ ...bucket.at(path), UploadId, PartNumberMarker });
    const page: ListPartsCommandOutput = await bucket.client.send(asked);
    yield* page.Parts ?? [];
    isTruncated = page.IsTruncated === true;
    PartNumberMarker = page.NextPartNumberMarker;
  }
}

/**
 * Lists the parts that the bucket has: clients need not keep the answers of their parts. Null when the upload is over.
 */
async function listParts(bucket: Bucket, path: MediaPath, uploadId: string): Promise<SentPart[] | null> {
  const sent: SentPart[] = [];
  try {
    for await (const { PartNumber = 0, ETag = '', Size = 0 } of listPages(bucket, path, uploadId)) {
      sent.push({ PartNumber, ETag, size: Size });
    }
    return sent;
  } catch (error) {
    if (readFault(error)?.name === 'NoSuchUpload') return null;
    throw error;
  }
}

function incomplete(path: MediaPath, seen: number, size: number): AppError {
  const message = `${formatMediaReference(path)}: the parts that have come hold ${seen} bytes; announced were ${size}`;
  return new AppError('upload_incomplete', message, { details: { seen_bytes: seen, announced_bytes: size } });
}

interface PartsToComplete {
  readonly uploadId: string;
  readonly size: number;
}

async function completeParts(
  bucket: Bucket,
  path: MediaPath,
  { uploadId, size }: PartsToComplete,
): Promise<string | null> {
  const { CompleteMultipartUploadCommand } = bucket.packages.s3;
  const parts = await listParts(bucket, path, uploadId);
  if (parts === null) {
    // Completed before, and the answer was lost; or given up.
    if ((await headObject(bucket, path))?.size === size) return null;
    throw incomplete(path, 0, size);
  }
  const seen = parts.reduce((sum, part) => sum + part.size, 0);
  if (seen !== size) throw incomplete(path, seen, size);
  const Parts = parts.map(({ PartNumber, ETag }) => ({ PartNumber, ETag }));
  const { ETag } = await bucket.client.send(
    new CompleteMultipartUploadCommand({
      ...bucket.at(path),
      UploadId: uploadId,
      MultipartUpload: { Parts },
    }),
  );
  return requireEtag(ETag);
}

function createDirectAccess(bucket: Bucket): DirectAccess {
  const { reach } = bucket;
  return {
    uploadMs: requestS * 1_000,
    allowRead: (path, { attachment }) => reach(() => allowRead(bucket, path, attachment)),
    allowUpload: (path, upload) => reach(() => allowUpload(bucket, path, upload)),
    allowParts: (path, upload, partBytes) =>
      reach(() => allowParts(bucket, path, { ...upload, partBytes }), path),
    completeParts: (path, uploadId, size) =>
      reach(() => completeParts(bucket, path, { uploadId, size }), path),
  };
}

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

/** Probes that run in parallel, or were killed, leave so many files at most. */
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
