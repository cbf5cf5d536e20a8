/** Every error leaves as problem+json (RFC 9457). Causes go to the log with the request's id and nowhere else. */
import type { IncomingMessage } from 'node:http';
import type { Logger } from 'pino';
import { type ErrorCode, errorTable } from '../../contracts/errors.ts';
import type { Json } from '../../contracts/primitives.ts';
import type { Problem } from '../../contracts/problem.ts';
import { isPlainObject } from '../../core/json-type.ts';
import type { AppError } from '../../errors.ts';
import { translateFault } from '../fault.ts';
import type { ApiMiddleware } from './request-state.ts';

export const problemType = (code: ErrorCode): string => `/docs/errors#${code}`;

const membersOf = (details: Json | undefined): Record<string, Json> =>
  details === undefined ? {} : isPlainObject(details) ? { ...details } : { details };

const toProblem = (error: AppError, place: { instance: string; request_id: string }): Problem => ({
  ...membersOf(error.code === 'internal' ? undefined : error.details),
  type: problemType(error.code),
  title: errorTable[error.code].meaning,
  status: error.status,
  detail: error.code === 'internal' ? 'unexpected fault' : error.message,
  ...place,
  code: error.code,
  ...(error.errors === undefined ? {} : { errors: [...error.errors] }),
});

const isGone = ({ destroyed, complete }: IncomingMessage): boolean => destroyed && !complete;

/** Must be the outermost but for the request's id and log. */
export const problem =
  (logger: Logger): ApiMiddleware =>
  async (ctx, next) => {
    try {
      await next();
    } catch (thrown) {
      const error = translateFault(thrown);
      const { request_id, route } = ctx.state;
      if (isGone(ctx.req)) return void logger.debug({ request_id, route, err: error }, 'client gone');
      if (error.status >= 500) logger.error({ request_id, route, err: error.cause ?? error }, error.code);
      if (ctx.headerSent) return void ctx.res.destroy();
      if (error.retryAfterS !== undefined) ctx.set('Retry-After', String(Math.ceil(error.retryAfterS)));
      ctx.status = error.status;
      ctx.body = JSON.stringify(toProblem(error, { instance: ctx.path, request_id }));
      ctx.type = 'application/problem+json';
    }
  };
