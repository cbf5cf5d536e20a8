/**
 * Progress of a call for a caller that takes it (`Accept: application/x-ndjson`): a line each, and at last the ordinary
 * answer as a line. Who says nothing of its progress answers as ever.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ExecContext } from './define-capability.ts';
import type { ExecReply } from './exec-call.ts';

/** Lines that come sooner are left out, but for the last one. */
const pauseMs = 250;

export function createProgressWriter(
  request: IncomingMessage,
  response: ServerResponse,
): ExecContext['progress'] {
  const isWanted = String(request.headers.accept ?? '').includes('application/x-ndjson');
  let toldAt = Number.NEGATIVE_INFINITY;
  return (fraction, message) => {
    const now = performance.now();
    const isSoon = now - toldAt < pauseMs && fraction < 1;
    if (!isWanted || isSoon || response.destroyed || response.writableEnded) return;
    toldAt = now;
    if (!response.headersSent) response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    const progress = Math.min(1, Math.max(0, Number(fraction) || 0));
    response.write(`${JSON.stringify({ progress, message: message?.slice(0, 200) })}\n`);
  };
}

/** An answer whose head has gone already says what the head would have said. */
export function toLastLine({ status, body, headers }: ExecReply): string {
  const retryAfter = headers?.['retry-after'];
  const code = headers?.['x-error-code'];
  const head = {
    status,
    ...(retryAfter === undefined ? {} : { retry_after_s: Number(retryAfter) }),
    ...(code === undefined ? {} : { error_code: code }),
  };
  return `${JSON.stringify(status === 200 ? body : { ...body, ...head })}\n`;
}
