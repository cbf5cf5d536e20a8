/** Gives an answer to Koa, which puts it on the wire: JSON, text, bytes or a stream. */
import { Readable } from 'node:stream';
import type { ParameterizedContext } from 'koa';
import type { Answer } from './route.ts';

export function sendAnswer(ctx: ParameterizedContext, { status, headers, body }: Answer): void {
  if (body === undefined) {
    ctx.body = null;
    ctx.set('Content-Length', '0');
  } else {
    ctx.set('Content-Type', typeOf(body));
    const isHead = ctx.method === 'HEAD';
    if (isStreamMaker(body)) {
      if (!isHead) ctx.body = body();
    } else if (body instanceof Readable && isHead) body.destroy();
    else ctx.body = isSendable(body) ? body : JSON.stringify(body);
  }
  ctx.status = status;
  if (headers !== undefined) ctx.set(headers);
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
