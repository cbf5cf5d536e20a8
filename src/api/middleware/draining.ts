import type { ApiMiddleware } from './request-state.ts';

/** While the server closes, every answer tells its client to come back on another connection. */
export const draining =
  (closing: AbortSignal): ApiMiddleware =>
  async (ctx, next) => {
    const leave = (): void => {
      if (closing.aborted && !ctx.headerSent) ctx.set('Connection', 'close');
    };
    leave();
    try {
      await next();
    } finally {
      leave();
    }
  };
