/** Reads `s3://bucket/prefix?region=…&endpoint=…&path_style=true`. Keys are never part of it: the AWS chain finds them. */
import { ConfigurationError } from '../../errors/configuration-error.ts';

export interface S3Location {
  readonly bucket: string;
  /** Without slashes at its ends; empty for the whole bucket. */
  readonly prefix: string;
  readonly region: string | undefined;
  /** Of a server other than Amazon's. */
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

function trimSlashes(path: string): string {
  let from = 0;
  let to = path.length;
  while (path[from] === '/') from++;
  while (to > from && path[to - 1] === '/') to--;
  return path.slice(from, to);
}

/** @throws Error that says what was seen and what is allowed */
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
  const prefix = trimSlashes(pathname);
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
