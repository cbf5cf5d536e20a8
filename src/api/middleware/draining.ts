import type { ServerResponse } from 'node:http';
import { CancelSource } from '../../core/cancellation.ts';
import type { ApiMiddleware, RequestState } from './request-state.ts';

export interface Draining {
  readonly middleware: ApiMiddleware;
  /** Requests whose answers have not ended. */
  readonly open: ReadonlyMap<ServerResponse, RequestState>;
  /** Aborted once the server closes. */
  readonly closing: AbortSignal;
  readonly begin: () => void;
}

/**
 * A request is `gone` when its answer has ended, when its connection closes and, unless its route is long, when the
 * server closes: whatever still works for it stops. A closing server tells every client to come back on another
 * connection.
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
        state.gone.abort('gone');
      });
      await next();
      if (closing.signal.aborted) ctx.set('Connection', 'close');
    },
    open,
    closing: closing.signal,
    begin: () => {
      closing.abort();
      for (const state of open.values()) if (state.route?.isLong !== true) state.gone.abort('gone');
    },
  };
}
