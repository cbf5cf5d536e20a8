import { AsyncResource } from 'node:async_hooks';
import type { Logger } from 'pino';
import type { ApiMiddleware } from './request-state.ts';

const quietPaths = new Set(['/livez', '/readyz']);

/** Writes one line when the answer has been sent or the client has gone: never headers, bodies or queries. */
export function requestLog(logger: Logger): ApiMiddleware {
  return ({ req, res, state }, next) => {
    const startedAt = performance.now();
    // Bound: the connection closes outside of the request, whose place in a trace the line names.
    const write = AsyncResource.bind(() => {
      const path = state.route?.path ?? 'none';
      const level = quietPaths.has(path) ? 'debug' : 'info';
      if (!logger.isLevelEnabled(level)) return;
      const line = {
        request_id: state.request_id,
        method: req.method,
        route: path,
        status: res.headersSent ? res.statusCode : undefined,
        ms: Math.round(performance.now() - startedAt),
        key_id: state.caller?.key_id,
        project_id: state.caller?.project_id,
        ...(res.writableFinished ? {} : { aborted: true }),
      };
      logger[level](line, 'request');
    });
    res.once('close', write);
    return next();
  };
}
