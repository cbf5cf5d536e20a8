/**
 * Files to and from the media store, streamed. A downloaded file appears under its name only when it is complete and
 * has the SHA-256 that the server states.
 */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { extname } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { describeLocal, RefusedTransfer, sendAnnounced } from '@capstan/capability/media/upload';
import { formatMediaReference, type MediaPath, UploadTicket } from '@capstan/core/contracts/media';
import { ProblemError, UnreachableError, UsageError } from '../errors.ts';
import { formatBytes } from '../render/formats.ts';
import type { Terminal } from '../shell.ts';
import { authorisation, jsonBody, readProblem, toUnreachable } from './api-client.ts';
import type { Session } from './session.ts';

const contentTypes: Readonly<Record<string, string>> = {
  '.aac': 'audio/aac',
  '.flac': 'audio/flac',
  '.gif': 'image/gif',
  '.jpeg': 'image/jpeg',
  '.jpg': 'image/jpeg',
  '.json': 'application/json',
  '.m4a': 'audio/mp4',
  '.mkv': 'video/x-matroska',
  '.mov': 'video/quicktime',
  '.mp3': 'audio/mpeg',
  '.mp4': 'video/mp4',
  '.pdf': 'application/pdf',
  '.png': 'image/png',
  '.srt': 'application/x-subrip',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.vtt': 'text/vtt',
  '.wav': 'audio/wav',
  '.webm': 'video/webm',
  '.webp': 'image/webp',
};

function contentTypeOf(name: string): string {
  return contentTypes[extname(name).toLowerCase()] ?? 'application/octet-stream';
}

interface LocalFile {
  readonly stream: Readable;
  /** Unknown for stdin. */
  readonly size: number | undefined;
}

async function openLocal(path: string, { shell }: Session): Promise<LocalFile> {
  if (path === '-') return { stream: Readable.from(shell.stdin), size: undefined };
  try {
    const handle = await open(path);
    const found = await handle.stat();
    if (found.isFile()) return { stream: handle.createReadStream(), size: found.size };
    await handle.close();
  } catch (thrown) {
    const reason = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : String(thrown);
    throw new UsageError(`cannot read ${path}: ${reason}`, { cause: thrown });
  }
  throw new UsageError(`${path} is not a file`);
}

/** Counts the bytes and, on a terminal, shows the count at most ten times a second. */
function createMeter(label: string, size: number | undefined, terminal: Terminal): Transform {
  let bytes = 0;
  let told = 0;
  const tell = (): void => {
    if (terminal.isTTY !== true || performance.now() - told < 100) return;
    told = performance.now();
    const share = size ? `${Math.floor((100 * bytes) / size)}% of ${formatBytes(size)}` : formatBytes(bytes);
    terminal.write(`\r\u001b[K${label}  ${share}`);
  };
  return new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      bytes += chunk.length;
      tell();
      done(null, chunk);
    },
    flush: (done) => {
      if (terminal.isTTY === true) terminal.write('\r\u001b[K');
      done();
    },
  });
}

/** Larger files are announced with their digest, so that they can go directly to a bucket, in parts. */
const announcedBytes = 16 * 1_048_576;

interface Sent {
  readonly path: string;
  readonly to: MediaPath;
  readonly meter: Transform;
}

/** @returns the API's JSON about the file */
async function sendThrough({ client: { connection } }: Session, file: LocalFile, { path, to, meter }: Sent) {
  const { request } = await import('undici');
  const { statusCode, headers, body } = await request(`${connection.url}/v1/media/${to.job_id}/${to.file}`, {
    method: 'PUT',
    body: file.stream.pipe(meter),
    headers: {
      ...authorisation(connection),
      'content-type': contentTypeOf(path === '-' ? to.file : path),
      ...(file.size === undefined ? {} : { 'content-length': String(file.size) }),
    },
    headersTimeout: 0,
  });
  const text = await body.text();
  if (statusCode < 400) return text;
  throw new ProblemError(readProblem(statusCode, text, String(headers['retry-after'] ?? '')));
}

async function sendAsAnnounced({ client }: Session, { path, to, meter }: Sent): Promise<string> {
  const file = await describeLocal(path, contentTypeOf(path));
  const place = `/v1/media/${to.job_id}/${to.file}/upload`;
  const { value: ticket } = await client.post(place, UploadTicket, jsonBody(file));
  meter.resume();
  const text = await sendAnnounced({
    localPath: path,
    ticket,
    baseUrl: client.connection.url,
    onBytes: (chunk) => void meter.write(chunk),
  });
  meter.end();
  return text ?? JSON.stringify({ reference: formatMediaReference(to), ...file });
}

/**
 * Returns the server's answer as text.
 *
 * @throws UsageError when the local file cannot be read; ProblemError; UnreachableError
 */
export async function uploadMedia(session: Session, path: string, to: MediaPath): Promise<string> {
  const file = await openLocal(path, session);
  const meter = createMeter(formatMediaReference(to), file.size, session.shell.stderr);
  file.stream.on('error', (fault) => meter.destroy(fault));
  const sent = { path, to, meter };
  try {
    return file.size === undefined || file.size < announcedBytes
      ? await sendThrough(session, file, sent)
      : await sendAsAnnounced(session, sent);
  } catch (thrown) {
    if (thrown instanceof RefusedTransfer)
      throw new ProblemError(readProblem(thrown.status, thrown.text, null));
    throw toUnreachable(session.client.connection.url, thrown);
  } finally {
    file.stream.destroy();
  }
}

function readDigest(header: string | null): string | undefined {
  return /sha-256=:([^:]+):/.exec(header ?? '')?.[1];
}

async function saveTo(
  body: Readable,
  meter: Transform,
  { target, digest }: { readonly target: string; readonly digest: string | undefined },
): Promise<void> {
  const partial = `${target}.${process.pid}.part`;
  const hash = createHash('sha256');
  meter.on('data', (chunk: Buffer) => hash.update(chunk));
  try {
    await pipeline(body, meter, createWriteStream(partial, { flags: 'wx' }));
    if (digest !== undefined && hash.digest('base64') !== digest) {
      throw new UnreachableError(`what arrived for ${target} is not what the server stores; try again`);
    }
    await rename(partial, target);
  } finally {
    await rm(partial, { force: true });
  }
}

function toDownloadError(url: string, target: string, thrown: unknown): unknown {
  const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : '';
  return /^(EACCES|EDQUOT|EEXIST|EISDIR|ENOENT|ENOSPC|ENOTDIR|EPERM|EROFS)$/.test(code)
    ? new UsageError(`cannot write ${target}: ${code}`, { cause: thrown })
    : toUnreachable(url, thrown);
}

/** The bytes may come from elsewhere; the digest comes from the API. */
async function openBytes({ client }: Session, { job_id, file }: MediaPath): Promise<OpenedBytes> {
  const headers = { accept: '*/*' };
  const answer = await client.open(`/v1/media/${job_id}/${file}`, { headers, redirect: 'manual' });
  const digest = readDigest(answer.headers.get('repr-digest'));
  const elsewhere = answer.status === 307 ? answer.headers.get('location') : null;
  if (elsewhere === null) return { response: answer, digest };
  const response = await fetch(elsewhere); // without our key, which a bucket refuses
  if (response.ok) return { response, digest };
  throw new UnreachableError(`${new URL(elsewhere).host}, where the file is, answered ${response.status}`);
}

interface OpenedBytes {
  readonly response: Response;
  readonly digest: string | undefined;
}

/** @param target a path, or `-` for stdout */
export async function downloadMedia(session: Session, from: MediaPath, target: string): Promise<void> {
  const { client, shell } = session;
  try {
    const { response, digest } = await openBytes(session, from);
    const size = Number(response.headers.get('content-length')) || undefined;
    const meter = createMeter(target, size, shell.stderr);
    const body = Readable.from(response.body ?? []);
    if (target === '-') await pipeline(body, meter, shell.stdout, { end: false });
    else await saveTo(body, meter, { target, digest });
  } catch (thrown) {
    throw toDownloadError(client.connection.url, target, thrown);
  }
}
