/**
 * Files to and from the media store, streamed. A download appears under its name only when it is complete
 * and its SHA-256 is the one that the server states.
 */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { extname } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { formatMediaReference, type MediaPath } from '../../contracts/media.ts';
import { ProblemError, UnreachableError, UsageError } from '../errors.ts';
import { formatBytes } from '../render/amounts.ts';
import type { Terminal } from '../shell.ts';
import { authorisation, readProblem, toUnreachable } from './api-client.ts';
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

/** Counts what passes and, on a terminal, says so at most ten times a second. */
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

/**
 * Answers the server's answer as text.
 *
 * @throws UsageError when the local file cannot be read; ProblemError; UnreachableError
 */
export async function uploadMedia(session: Session, path: string, to: MediaPath): Promise<string> {
  const { connection } = session.client;
  const { request } = await import('undici');
  const { stream, size } = await openLocal(path, session);
  const meter = createMeter(formatMediaReference(to), size, session.shell.stderr);
  stream.on('error', (fault) => meter.destroy(fault));
  try {
    const { statusCode, headers, body } = await request(
      `${connection.url}/v1/media/${to.job_id}/${to.file}`,
      {
        method: 'PUT',
        body: stream.pipe(meter),
        headers: {
          ...authorisation(connection),
          'content-type': contentTypeOf(path === '-' ? to.file : path),
          ...(size === undefined ? {} : { 'content-length': String(size) }),
        },
        headersTimeout: 0,
      },
    );
    const text = await body.text();
    if (statusCode < 400) return text;
    throw new ProblemError(readProblem(statusCode, text, String(headers['retry-after'] ?? '')));
  } catch (thrown) {
    throw toUnreachable(connection.url, thrown);
  } finally {
    stream.destroy();
  }
}

function readDigest(header: string | null): string | undefined {
  return /sha-256=:([^:]+):/.exec(header ?? '')?.[1];
}

async function saveTo(
  body: Readable,
  meter: Transform,
  target: string,
  expected: string | undefined,
): Promise<void> {
  const partial = `${target}.${process.pid}.part`;
  const hash = createHash('sha256');
  meter.on('data', (chunk: Buffer) => hash.update(chunk));
  try {
    await pipeline(body, meter, createWriteStream(partial, { flags: 'wx' }));
    if (expected !== undefined && hash.digest('base64') !== expected) {
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

/** @param target a path, or `-` for stdout */
export async function downloadMedia(session: Session, from: MediaPath, target: string): Promise<void> {
  const { client, shell } = session;
  const response = await client.open(`/v1/media/${from.job_id}/${from.file}`, { headers: { accept: '*/*' } });
  const size = Number(response.headers.get('content-length')) || undefined;
  const meter = createMeter(target, size, shell.stderr);
  const body = Readable.from(response.body ?? []);
  try {
    if (target === '-') await pipeline(body, meter, shell.stdout, { end: false });
    else await saveTo(body, meter, target, readDigest(response.headers.get('repr-digest')));
  } catch (thrown) {
    throw toDownloadError(client.connection.url, target, thrown);
  }
}
