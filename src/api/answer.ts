/**
 * Passes an answer to Koa, which sends it: JSON, text, bytes or a stream. JSON in reply to a GET is compressed if it is
 * large enough, in Node's own threads. Errors are sent as problem+json (RFC 9457). An unexpected error reveals nothing.
 */

import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { type ErrorCode, errorTable } from '@capstan/core/contracts/errors';
import type { Json } from '@capstan/core/contracts/primitives';
import type { Problem } from '@capstan/core/contracts/problem';
import { AppError, isUnavailable, toAppError } from '@capstan/core/errors/app-error';
import { writeJson } from '@capstan/core/json/text';
import { isPlainObject } from '@capstan/core/json/values';
import type { ParameterizedContext } from 'koa';
import type { Answer } from './route.ts';

/** Of a stream of server-sent events; nginx buffers an answer without this header. */
export const eventStreamHeaders = { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' };

/** The best compression that a client accepts, the smaller first; null: none. @param header `Accept-Encoding` */
export function acceptedEncoding(header: string | undefined): 'br' | 'gzip' | null {
  const accepted = new Set(
    (header ?? '')
      .toLowerCase()
      .split(',')
      .map((part) => part.split(';').map((piece) => piece.trim()))
      .filter(([, weight]) => weight === undefined || !/^q=0(?:\.0*)?$/.test(weight))
      .map(([name]) => name),
  );
  if (accepted.has('br')) return 'br';
  return accepted.has('gzip') ? 'gzip' : null;
}

/** Smaller answers are sent uncompressed. */
const worthBytes = 8_192;

// The lowest qualities that compress: lists repeat themselves, so the next ones take twice the time for a tenth less.
const compress = {
  br: (text: string) => promisify(brotliCompress)(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
  gzip: (text: string) => promisify(gzip)(text, { level: 2 }),
} as const;

/** Compresses only answers to GET: a caller that waits for a call is not delayed. */
async function compressJson(ctx: ParameterizedContext, text: string): Promise<void> {
  ctx.vary('Accept-Encoding');
  const encoding = text.length < worthBytes ? null : acceptedEncoding(ctx.req.headers['accept-encoding']);
  if (encoding === null) return;
  ctx.body = await compress[encoding](text);
  ctx.set('Content-Encoding', encoding);
}

/** @returns a promise where the answer may be compressed */
export function sendAnswer(
  ctx: ParameterizedContext,
  { status, headers, body }: Answer,
): Promise<void> | undefined {
  if (body === undefined) {
    ctx.body = null;
    ctx.res.setHeader('Content-Length', '0');
  } else {
    ctx.res.setHeader('Content-Type', typeOf(body));
    writeBody(ctx, body, headers === eventStreamHeaders);
  }
  ctx.status = status;
  if (headers !== undefined) ctx.set(headers);
  const mayShrink = ctx.method === 'GET' && body !== undefined && typeOf(body) === 'application/json';
  return mayShrink ? compressJson(ctx, ctx.body as string) : undefined;
}

function writeBody(ctx: ParameterizedContext, body: unknown, areEvents: boolean): void {
  const isHead = ctx.method === 'HEAD';
  if (isStreamMaker(body)) {
    if (!isHead) ctx.body = body();
  } else if (body instanceof Readable && isHead) body.destroy();
  else if (body instanceof Readable && areEvents) passOn(ctx, body);
  else ctx.body = isSendable(body) ? body : writeJson(body);
}

/** Passes events on as they come: Koa's pipeline costs as much as several of them. Begins after the headers are set. */
function passOn(ctx: ParameterizedContext, events: Readable): void {
  const { res } = ctx;
  ctx.respond = false;
  events.once('error', (error) => ctx.onerror(error));
  events.once('close', () => {
    if (!events.readableEnded) res.destroy();
  });
  res.once('close', () => events.destroy());
  events.pipe(res);
}

function isStreamMaker(body: unknown): body is () => Readable {
  return typeof body === 'function';
}

function isSendable(body: unknown): body is Readable | Buffer | string {
  return body instanceof Readable || Buffer.isBuffer(body) || typeof body === 'string';
}

function typeOf(body: unknown): string {
  if (body instanceof Readable || Buffer.isBuffer(body) || isStreamMaker(body))
    return 'application/octet-stream';
  return typeof body === 'string' ? 'text/plain; charset=utf-8' : 'application/json';
}

function problemType(code: ErrorCode): string {
  return `/docs/errors#${code}`;
}

function membersOf(details: Json | undefined): Record<string, Json> {
  return details === undefined ? {} : isPlainObject(details) ? { ...details } : { details };
}

/** Content type of answers with a JSON document per line. */
export const ndjson = 'application/x-ndjson';

export function toProblem(error: AppError, place: { instance: string; request_id: string }): Problem {
  return {
    ...membersOf(error.code === 'internal' ? undefined : error.details),
    type: problemType(error.code),
    title: errorTable[error.code].meaning,
    status: error.status,
    detail: error.code === 'internal' ? 'unexpected fault' : error.message,
    ...place,
    code: error.code,
    ...(error.errors === undefined ? {} : { errors: [...error.errors] }),
  };
}

/** Translates an unknown error for a client: `unavailable` if our database is unreachable, else `internal`. */
export function translateFault(thrown: unknown): AppError {
  return !(thrown instanceof AppError) && isUnavailable(thrown)
    ? new AppError('unavailable', 'the database does not answer', { cause: thrown, retryAfterS: 1 })
    : toAppError(thrown);
}
