import { AppError } from '../../errors.ts';
import type { ApiMiddleware } from './request-state.ts';

/** Requests that different readers would read differently: several Host headers, NUL in the address. */
export const refuseAmbiguity: ApiMiddleware = async (ctx, next) => {
  const hosts = ctx.req.headersDistinct.host?.length ?? 0;
  if (hosts > 1)
    throw new AppError('request_invalid', `the request has ${hosts} Host headers; one is allowed`);
  if (/%00/.test(ctx.url)) throw new AppError('request_invalid', 'the address holds NUL (%00)');
  await next();
};
