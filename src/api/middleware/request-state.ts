/** What the middleware know of a request, each of what runs after it. */
import type { IncomingMessage } from 'node:http';
import type { Middleware } from 'koa';
import type { CancelSource } from '../../core/cancellation.ts';
import type { Caller } from '../../services/access/caller.ts';
import type { Route } from '../route.ts';

export interface RequestState {
  request_id: string;
  /** Aborted when nobody waits for the answer any more. */
  gone: CancelSource<'gone'>;
  /** Absent until a route has taken the request. */
  route?: Route;
  /** Absent on open routes, and until the key has been accepted. */
  caller?: Caller;
  /** The same: the key itself. */
  key?: string;
}

export type ApiMiddleware = Middleware<RequestState>;

/** The path as it was sent, still percent-encoded. */
export function sentPath({ url = '/' }: IncomingMessage): string {
  const end = url.indexOf('?');
  return end < 0 ? url : url.slice(0, end);
}

/** Every value of a header: one that is sent twice counts twice. */
export function valuesOf({ rawHeaders }: IncomingMessage, name: string): readonly string[] {
  const values: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const sent = rawHeaders[at] as string;
    if (sent.length === name.length && sent.toLowerCase() === name) values.push(rawHeaders[at + 1] as string);
  }
  return values;
}
