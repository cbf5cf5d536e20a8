import type { Middleware } from 'koa';
import type { Caller } from '../../services/access/caller.ts';

/** What the middleware know of a request. */
export interface RequestState {
  request_id: string;
  /** The template of the matched path. */
  route?: string;
  caller?: Caller;
}

export type ApiMiddleware = Middleware<RequestState>;
