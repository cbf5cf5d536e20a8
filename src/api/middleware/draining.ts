import type { ServerResponse } from 'node:http';
import { CancelSource } from '../../core/cancellation.ts';
import type { ApiMiddleware, RequestState } from './request-state.ts';

export interface Draining {
  readonly middleware: ApiMiddleware;
  /** Aborted once the server closes. */
  readonly closing: AbortSignal;
  readonly begin: () => void;
}

/**
 * A request is `gone` when its connection closes before the end of its answer and, unless its route is long, when the
 * server closes. A closing server tells every client to come back on another connection.
 */
export function createDraining(): Draining {
  const closing = new AbortController();
  const open = new Map<ServerResponse, RequestState>();
  return {
    middleware: async (ctx, next) => {
      const { res, state } = ctx;
      state.gone = new CancelSource();
      open.set(res, state);
      res.once('close', () => {
        open.delete(res);
        leave(res, state);
      });
      await next();
      if (closing.signal.aborted) ctx.set('Connection', 'close');
    },
    closing: closing.signal,
    begin: () => {
      closing.abort();
      for (const [res, state] of open) if (state.route?.isLong !== true) leave(res, state);
    },
  };
}

function leave({ writableFinished }: ServerResponse, { gone }: RequestState): void {
  if (!writableFinished) gone.abort('gone');
}
