/**
 * One prefix of one bucket, and the client that reaches it: the address that is read from the setting, the packages
 * that are loaded for it, and its faults as our errors.
 */

import type { S3Client } from '@aws-sdk/client-s3';
import { type MediaPath, parseMediaPath } from '@capstan/core/contracts/media';
import { AppError } from '@capstan/core/errors/app-error';
import { ConfigurationError, installCommandOf, isNotInstalled } from '@capstan/core/errors/start-errors';
import { withoutEndSlashes } from '@capstan/core/expression/language';
import { fileAndFolder, requireMediaPath } from './media-store.ts';

// Reads `s3://bucket/prefix?region=…&endpoint=…&path_style=true`. Keys are never part of it: the AWS chain finds
// them.

interface S3Location {
  readonly bucket: string;
  /** Without slashes at its ends; empty for the whole bucket. */
  readonly prefix: string;
  readonly region: string | undefined;
  /** The address of a server other than Amazon's. */
  readonly endpoint: string | undefined;
  /** The bucket is a part of the path, not of the host's name. */
  readonly pathStyle: boolean;
}

const form = 's3://BUCKET/PREFIX?region=…&endpoint=https://…&path_style=true';
const parameters = ['region', 'endpoint', 'path_style'];

function refuse(seen: string, allowed: string): ConfigurationError {
  return new ConfigurationError(`MEDIA_URL ${form}: ${seen}; ${allowed}`);
}

function requireBucket(bucket: string): void {
  if (/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket)) return;
  const allowed = 'allowed are 3 to 63 small letters, digits, dots and dashes';
  throw refuse(`the bucket is ${JSON.stringify(bucket)}`, allowed);
}

function requirePrefix(prefix: string): void {
  const isAllowed = prefix
    .split('/')
    .every((part) => /^[A-Za-z0-9._-]{1,128}$/.test(part) && !/^\.+$/.test(part));
  if (prefix === '' || isAllowed) return;
  throw refuse(
    `the prefix is ${JSON.stringify(prefix)}`,
    'allowed are letters, digits, dots, _ and - between slashes',
  );
}

function requireEndpoint(endpoint: string | undefined): void {
  if (endpoint === undefined || (/^https?:\/\//.test(endpoint) && URL.canParse(endpoint))) return;
  throw refuse(`endpoint is ${JSON.stringify(endpoint)}`, 'allowed is an http or https address');
}

function readSwitch(text: string | null): boolean {
  if (text === null || text === 'true' || text === 'false') return text === 'true';
  throw refuse(`path_style is ${JSON.stringify(text)}`, 'allowed are true and false');
}

/** @throws Error with the seen and the allowed values */
export function parseS3Url(mediaUrl: string): S3Location {
  if (!URL.canParse(mediaUrl)) throw refuse(`seen was ${JSON.stringify(mediaUrl)}`, 'it is no URL');
  const { hostname: bucket, username, port, pathname, searchParams } = new URL(mediaUrl);
  if (username !== '') {
    const way = 'keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or a role';
    throw refuse('it holds a key', way);
  }
  if (port !== '') throw refuse(`it holds the port ${port}`, 'a server of your own goes into endpoint');
  const unknown = [...searchParams.keys()].find((name) => !parameters.includes(name));
  if (unknown !== undefined) throw refuse(`seen was ${unknown}`, `allowed are ${parameters.join(', ')}`);
  const prefix = withoutEndSlashes(pathname).replace(/^\/+/, '');
  const endpoint = searchParams.get('endpoint') ?? undefined;
  requireBucket(bucket);
  requirePrefix(prefix);
  requireEndpoint(endpoint);
  // Servers other than Amazon's take any region, most of them this one alone.
  const region = searchParams.get('region') ?? (endpoint === undefined ? undefined : 'us-east-1');
  return { bucket, prefix, region, endpoint, pathStyle: readSwitch(searchParams.get('path_style')) };
}

/** For people and logs. */
export function describeLocation({ bucket, prefix, endpoint }: S3Location): string {
  const place = prefix === '' ? `s3://${bucket}` : `s3://${bucket}/${prefix}`;
  return endpoint === undefined ? place : `${place} at ${endpoint}`;
}

// What S3 and the way to it answer, as our errors. The SDK has repeated by then what may be repeated.

interface S3Fault {
  readonly name: string;
  /** Undefined when there was no answer. */
  readonly status: number | undefined;
  readonly reason: string;
}

/** Null for an error that is not of S3 or the way to it. */
export function readFault(thrown: unknown): S3Fault | null {
  if (!(thrown instanceof Error) || thrown instanceof AppError) return null;
  const metadata = '$metadata' in thrown ? (thrown.$metadata as { httpStatusCode?: number }) : undefined;
  const code = 'code' in thrown ? String(thrown.code) : undefined;
  const isOfWay =
    code !== undefined || thrown.name === 'TimeoutError' || thrown.name === 'CredentialsProviderError';
  if (metadata === undefined && !isOfWay) return null;
  const status = metadata?.httpStatusCode;
  const name = thrown.name === 'Error' ? (code ?? thrown.name) : thrown.name;
  return {
    name,
    status,
    reason: thrown.message === '' || thrown.message === 'UnknownError' ? name : thrown.message,
  };
}

export function isMissing(thrown: unknown): boolean {
  const fault = readFault(thrown);
  return (
    fault !== null && (fault.name === 'NoSuchKey' || (fault.status === 404 && fault.name === 'NotFound'))
  );
}

/** The condition of the request did not hold; 409 is AWS' word for another conditional write in progress. */
export function isConditionFailed(thrown: unknown): boolean {
  const fault = readFault(thrown);
  return fault !== null && (fault.status === 412 || fault.name === 'ConditionalRequestConflict');
}

/** Gateways over file systems know folders. */
const clashNames: ReadonlySet<string> = new Set(['ExistingObjectIsDirectory', 'ObjectParentIsFile']);

/** @param place the store, for people */
function toStoreError(thrown: unknown, place: string, path?: MediaPath): unknown {
  const fault = readFault(thrown);
  if (fault === null) return thrown;
  const { name, status, reason } = fault;
  if (path !== undefined && clashNames.has(name)) return fileAndFolder(path, thrown);
  const refused = status !== undefined && status < 500;
  const message = refused
    ? `the media store ${place} refuses: ${name} (${reason}); capstan doctor says more`
    : `the media store ${place} does not answer: ${name} (${reason})`;
  return new AppError(
    'unavailable',
    message,
    refused ? { cause: thrown } : { cause: thrown, retryAfterS: 5 },
  );
}

export interface Bucket {
  readonly packages: S3Packages;
  readonly client: S3Client;
  /** Makes URLs that are given away. */
  readonly presigning: S3Client;
  /** For people. */
  readonly name: string;
  /** The parameters of every request. @throws AppError `request_invalid` for a text that is no media path */
  at(path: MediaPath): { readonly Bucket: string; readonly Key: string };
  /** The parameters of a list of keys: all, or those of a job. */
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

/** @param checksums WHEN_REQUIRED where a URL is made: it would otherwise carry the checksum of an empty body */
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

// The packages of `s3://`, loaded when it is asked for: 40 packages that only it needs.

interface S3Packages {
  readonly s3: typeof import('@aws-sdk/client-s3');
  readonly storage: typeof import('@aws-sdk/lib-storage');
  readonly presigner: typeof import('@aws-sdk/s3-request-presigner');
}

/** Optional parts of Capstan's package. */
export const s3PackageNames = [
  '@aws-sdk/client-s3',
  '@aws-sdk/lib-storage',
  '@aws-sdk/s3-request-presigner',
] as const;

async function importAll(): Promise<S3Packages> {
  const [s3, storage, presigner] = await Promise.all([
    import('@aws-sdk/client-s3'),
    import('@aws-sdk/lib-storage'),
    import('@aws-sdk/s3-request-presigner'),
  ]);
  return { s3, storage, presigner };
}

/** @throws Error with the command that installs them, when they are missing */
export async function loadS3Packages(load: () => Promise<S3Packages> = importAll): Promise<S3Packages> {
  try {
    return await load();
  } catch (cause) {
    if (!isNotInstalled(cause)) throw cause;
    const command = installCommandOf(...s3PackageNames);
    const message = `MEDIA_URL is s3://…, and the packages for it are not installed; install them: ${command}`;
    throw new ConfigurationError(message, { cause });
  }
}
