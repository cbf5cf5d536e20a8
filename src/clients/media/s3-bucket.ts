/** One prefix of one bucket, and the client that reaches it. */
import type { S3Client } from '@aws-sdk/client-s3';
import { type MediaPath, parseMediaPath } from '../../contracts/media.ts';
import { requireMediaPath } from './media-faults.ts';
import { toStoreError } from './s3-faults.ts';
import { describeLocation, type S3Location } from './s3-location.ts';
import type { S3Packages } from './s3-packages.ts';

export interface Bucket {
  readonly packages: S3Packages;
  readonly client: S3Client;
  /** Makes URLs that are given away. */
  readonly presigning: S3Client;
  /** For people. */
  readonly name: string;
  /** What every request names. @throws AppError `request_invalid` for what is no media path */
  at(path: MediaPath): { readonly Bucket: string; readonly Key: string };
  /** Of keys below: all, or those of a job. */
  below(jobId?: string): { readonly Bucket: string; readonly Prefix: string };
  /** Null for a key that is no media path. */
  pathOf(key: string): MediaPath | null;
  /** @throws AppError for what S3 and the way to it answer */
  reach<Result>(work: () => Promise<Result>, path?: MediaPath): Promise<Result>;
}

const connectMs = 3_000;
/** Between two pieces of an answer. */
const silenceMs = 60_000;
const sockets = 500;

/** @param checksums WHEN_REQUIRED where a URL is made: it would carry the checksum of an empty body else */
function createClient(
  { s3 }: S3Packages,
  { region, endpoint, pathStyle }: S3Location,
  checksums: 'WHEN_SUPPORTED' | 'WHEN_REQUIRED',
): S3Client {
  return new s3.S3Client({
    forcePathStyle: pathStyle,
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint }),
    requestChecksumCalculation: checksums,
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: connectMs,
      socketTimeout: silenceMs,
      httpAgent: { maxSockets: sockets },
      httpsAgent: { maxSockets: sockets },
    },
  });
}

export function openBucket(packages: S3Packages, location: S3Location): Bucket {
  const { bucket: Bucket, prefix } = location;
  const start = prefix === '' ? '' : `${prefix}/`;
  const name = describeLocation(location);
  return {
    packages,
    client: createClient(packages, location, 'WHEN_SUPPORTED'),
    presigning: createClient(packages, location, 'WHEN_REQUIRED'),
    name,
    at: (path) => {
      requireMediaPath(path);
      return { Bucket, Key: `${start}${path.job_id}/${path.file}` };
    },
    below: (jobId) => {
      if (jobId !== undefined) requireMediaPath({ job_id: jobId, file: 'x' });
      return { Bucket, Prefix: jobId === undefined ? start : `${start}${jobId}/` };
    },
    pathOf: (key) => (key.startsWith(start) ? parseMediaPath(key.slice(start.length)) : null),
    reach: (work, path) =>
      work().catch((error: unknown) => {
        throw toStoreError(error, name, path);
      }),
  };
}
