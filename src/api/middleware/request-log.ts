import type { Logger } from 'pino';
import type { ApiMiddleware } from './request-state.ts';

const isQuiet = (path: string): boolean => path === '/livez' || path === '/readyz';

/** One line when the answer has been sent or the client has gone: never headers, bodies or queries. */
export const requestLog =
  (logger: Logger): ApiMiddleware =>
  async (ctx, next) => {
    const startedAt = performance.now();
    ctx.res.once('close', () => {
      const line = {
        request_id: ctx.state.request_id,
        method: ctx.method,
        route: ctx.state.route ?? 'none',
        status: ctx.status,
        ms: Math.round(performance.now() - startedAt),
        key_id: ctx.state.caller?.key_id,
        project_id: ctx.state.caller?.project_id,
        ...(ctx.res.writableFinished ? {} : { aborted: true }),
      };
      if (isQuiet(ctx.path)) logger.debug(line, 'request');
      else logger.info(line, 'request');
    });
    await next();
  };
