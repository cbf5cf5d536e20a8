/**
 * One request and its answer: its id, who asked and for what, the headers that every answer to it carries, and whether
 * anybody still waits for it. It writes one line to the log when the answer has been sent or the client has gone:
 * never headers, bodies or queries.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { CancelSource } from '../../core/cancellation.ts';
import type { Caller } from '../../services/access/caller.ts';
import type { Route } from '../route.ts';

const acceptedId = /^[A-Za-z0-9._:-]{1,128}$/;

/** A sane `X-Request-Id` is taken over. */
function idOf({ headers }: IncomingMessage): string {
  const sent = headers['x-request-id'];
  return typeof sent === 'string' && acceptedId.test(sent) ? sent : randomUUID();
}

function pathOf(url: string): string {
  const end = url.indexOf('?');
  return end < 0 ? url : url.slice(0, end);
}

function isQuiet(path: string): boolean {
  return path === '/livez' || path === '/readyz';
}

export class Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly id: string;
  /** As it was sent, still percent-encoded. */
  readonly path: string;
  /** Set for the answer, whatever it will be. */
  readonly headers: Record<string, string>;
  readonly gone = new CancelSource<'gone'>();
  route: Route | null = null;
  caller: Caller | null = null;
  readonly #startedAt = performance.now();

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.request = request;
    this.response = response;
    this.id = idOf(request);
    this.path = pathOf(request.url ?? '/');
    this.headers = { 'X-Request-Id': this.id };
  }

  /** Nobody waits any more: the connection was closed before the end of the answer, or the server is closing. */
  leave(): void {
    if (!this.response.writableFinished) this.gone.abort('gone');
  }

  log(logger: Logger): void {
    const level = isQuiet(this.path) ? 'debug' : 'info';
    if (!logger.isLevelEnabled(level)) return;
    const line = {
      request_id: this.id,
      method: this.request.method,
      route: this.route?.path ?? 'none',
      status: this.response.statusCode,
      ms: Math.round(performance.now() - this.#startedAt),
      key_id: this.caller?.key_id,
      project_id: this.caller?.project_id,
      ...(this.response.writableFinished ? {} : { aborted: true }),
    };
    logger[level](line, 'request');
  }
}
