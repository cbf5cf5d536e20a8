/** Puts an answer on the wire: JSON, text, bytes or a stream, with the headers of the exchange. */
import { pipeline, Readable } from 'node:stream';
import type { Answer, AnswerHeaders } from '../route.ts';
import { commonHeaders } from './answer-headers.ts';
import type { Exchange } from './exchange.ts';

const unreadGraceMs = 5_000;

/**
 * For answers given before the whole body arrived: what still comes is thrown away for 5 s, so that the client reads
 * the answer instead of a reset, then the connection is cut.
 */
function discardRest({ request, response }: Exchange): void {
  response.once('finish', () => {
    if (request.complete) return;
    request.resume();
    const timer = setTimeout(() => request.socket.destroy(), unreadGraceMs);
    const stop = () => clearTimeout(timer);
    request.once('end', stop);
    request.once('close', stop);
  });
}

function sendStream({ request, response }: Exchange, stream: Readable): void {
  if (request.method === 'HEAD') {
    stream.destroy();
    response.end();
  } else {
    pipeline(stream, response, () => undefined); // a source that fails cuts the answer off
  }
}

function typeOf(body: unknown): string {
  if (body instanceof Readable || Buffer.isBuffer(body)) return 'application/octet-stream';
  return typeof body === 'string' ? 'text/plain; charset=utf-8' : 'application/json';
}

function toBytes(body: unknown): string | Buffer {
  return typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
}

function hasNoBody(status: number): boolean {
  return status === 204 || status === 304;
}

/** @param isClosing tells the client to come back on another connection */
export function sendAnswer(exchange: Exchange, { status, headers, body }: Answer, isClosing: boolean): void {
  const { request, response } = exchange;
  if (!request.complete) discardRest(exchange);
  const all: Record<string, string | number> = { ...commonHeaders, ...exchange.headers };
  if (isClosing) all.Connection = 'close';
  if (body === undefined) {
    if (!hasNoBody(status)) all['Content-Length'] = 0;
    response.writeHead(status, addTo(all, headers)).end();
    return;
  }
  all['Content-Type'] = typeOf(body);
  if (body instanceof Readable) {
    response.writeHead(status, addTo(all, headers));
    sendStream(exchange, body);
    return;
  }
  const bytes = toBytes(body);
  all['Content-Length'] = Buffer.byteLength(bytes);
  response.writeHead(status, addTo(all, headers)).end(bytes);
}

function addTo(all: Record<string, string | number>, headers: AnswerHeaders | undefined) {
  return headers === undefined ? all : Object.assign(all, headers);
}
