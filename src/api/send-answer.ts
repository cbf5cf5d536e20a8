/** Gives an answer to Koa, which puts it on the wire: JSON, text, bytes or a stream. */
import { Readable } from 'node:stream';
import type { ParameterizedContext } from 'koa';
import { compressJson } from './compress-json.ts';
import type { Answer } from './route.ts';

export async function sendAnswer(
  ctx: ParameterizedContext,
  { status, headers, body }: Answer,
): Promise<void> {
  if (body === undefined) {
    ctx.body = null;
    ctx.set('Content-Length', '0');
  } else {
    ctx.set('Content-Type', typeOf(body));
    const isHead = ctx.method === 'HEAD';
    if (isStreamMaker(body)) {
      if (!isHead) ctx.body = body();
    } else if (body instanceof Readable && isHead) body.destroy();
    else if (isSendable(body)) ctx.body = body;
    else await sendJson(ctx, JSON.stringify(body));
  }
  ctx.status = status;
  if (headers !== undefined) ctx.set(headers);
}

/** Only what is read is compressed: whoever makes a call waits for nothing else. */
async function sendJson(ctx: ParameterizedContext, text: string): Promise<void> {
  ctx.body = text;
  if (ctx.method !== 'GET') return;
  ctx.vary('Accept-Encoding');
  const compressed = await compressJson(text, ctx.req.headers['accept-encoding']);
  if (compressed === null) return;
  ctx.set('Content-Encoding', compressed.encoding);
  ctx.body = compressed.bytes;
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
