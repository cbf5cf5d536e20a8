/**
 * Sends a local file according to an upload ticket: to a bucket or to the API itself, in one piece or in parts. No key
 * is sent: the addresses grant access, and a bucket refuses a key beside them.
 *
 * Failed transfers are of two kinds: either the input is at fault, or the store is unavailable and the call should be
 * retried.
 */

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import type { UploadRequest, UploadTicket } from '@capstan/core/contracts/media';
import { CallFailure } from '../call-failure.ts';

/** An API or a bucket refused the transfer. */
export class RefusedTransfer extends Error {
  override readonly name = 'RefusedTransfer';
  readonly status: number;
  /** The answer's body. */
  readonly text: string;

  constructor(message: string, answer: { readonly status: number; readonly text: string }) {
    super(message);
    this.status = answer.status;
    this.text = answer.text;
  }
}

const passingStatuses: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);

/** `fetch` wraps network errors in a TypeError. */
function isOfWay(thrown: Error): boolean {
  return thrown instanceof TypeError && thrown.cause instanceof Error;
}

function isAway(thrown: unknown): thrown is Error {
  if (!(thrown instanceof Error)) return false;
  if (thrown instanceof RefusedTransfer) return passingStatuses.has(thrown.status);
  return isOfWay(thrown) || Reflect.get(thrown, 'code') === 'unavailable';
}

const retryAfterS = 5;

/** @throws CallFailure 503 when the store is unavailable, which is no fault of the input; else the original error */
export async function moveFile<Result>(signal: AbortSignal, move: () => Promise<Result>): Promise<Result> {
  try {
    return await move();
  } catch (thrown) {
    if (signal.aborted || !isAway(thrown)) throw thrown;
    const reason =
      thrown.cause instanceof Error ? `${thrown.message}: ${thrown.cause.message}` : thrown.message;
    throw new CallFailure(503, `the media store is away: ${reason}`, { retryAfterS, cause: thrown });
  }
}

/** Reads the whole file once. */
export async function describeLocal(localPath: string, contentType: string): Promise<UploadRequest> {
  const hash = createHash('sha256');
  let size = 0;
  for await (const chunk of createReadStream(localPath)) {
    size += chunk.length;
    hash.update(chunk);
  }
  return { size, sha256: hash.digest('hex'), content_type: contentType };
}

interface AnnouncedFile {
  readonly localPath: string;
  readonly ticket: UploadTicket;
  /** Address of the API, for tickets with relative addresses. */
  readonly baseUrl: string;
  readonly signal?: AbortSignal | undefined;
  /** Called with every chunk that is read. */
  readonly onBytes?: (chunk: Buffer) => void;
}

interface Piece {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly start: number;
  readonly end: number;
}

async function* readPiece(file: AnnouncedFile, { start, end }: Piece): AsyncGenerator<Buffer> {
  if (end < start) return;
  for await (const chunk of createReadStream(file.localPath, { start, end })) {
    file.onBytes?.(chunk);
    yield chunk;
  }
}

async function requireTaken(answer: Response): Promise<string> {
  const text = await answer.text();
  if (answer.ok) return text;
  const message = `the upload was answered ${answer.status}: ${text.slice(0, 500)}`;
  throw new RefusedTransfer(message, { status: answer.status, text });
}

async function send(file: AnnouncedFile, piece: Piece): Promise<string> {
  const isEmpty = piece.end < piece.start;
  const init: RequestInit & { duplex: 'half' } = {
    method: 'PUT',
    headers: piece.headers,
    body: isEmpty ? '' : (Readable.toWeb(Readable.from(readPiece(file, piece))) as ReadableStream),
    duplex: 'half',
    redirect: 'error',
    signal: file.signal ?? null,
  };
  return requireTaken(await fetch(new URL(piece.url, file.baseUrl), init));
}

/** @returns the API's JSON about the stored file; null if it was stored by a bucket. @throws RefusedTransfer */
export async function sendAnnounced(file: AnnouncedFile): Promise<string | null> {
  const { ticket, baseUrl, signal = null } = file;
  const pieces = 'parts' in ticket ? ticket.parts : [ticket];
  let start = 0;
  let answer = '';
  for (const { url, headers } of pieces) {
    const end = start + Number(headers['content-length']) - 1;
    answer = await send(file, { url, headers, start, end });
    start = end + 1;
  }
  if (!('parts' in ticket)) return answer.startsWith('{') ? answer : null;
  return requireTaken(await fetch(new URL(ticket.complete_url, baseUrl), { method: 'POST', signal }));
}
