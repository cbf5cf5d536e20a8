import type { IncomingMessage } from 'node:http';
import type { Logger } from 'pino';
import { translateFault } from '../fault.ts';
import { toProblem } from '../problem.ts';
import { type ApiMiddleware, sentPath } from './request-state.ts';

/** Every error leaves as problem+json. Causes go to the log with the request's id and nowhere else. */
export function problem(logger: Logger): ApiMiddleware {
  return async (ctx, next) => {
    try {
      await next();
    } catch (thrown) {
      const error = translateFault(thrown);
      const { request_id } = ctx.state;
      const about = { request_id, route: ctx.state.route?.path };
      if (isGone(ctx.req)) return void logger.debug({ ...about, err: error }, 'client gone');
      if (error.status >= 500) logger.error({ ...about, err: error.cause ?? error }, error.code);
      if (ctx.headerSent) return void ctx.res.destroy();
      if (error.retryAfterS !== undefined) ctx.set('Retry-After', String(Math.ceil(error.retryAfterS)));
      ctx.set('Content-Type', 'application/problem+json');
      ctx.status = error.status;
      ctx.body = JSON.stringify(toProblem(error, { instance: sentPath(ctx.req), request_id }));
    }
  };
}

function isGone({ destroyed, complete }: IncomingMessage): boolean {
  return destroyed && !complete;
}
