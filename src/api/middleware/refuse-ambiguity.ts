import { AppError } from '../../errors/app-error.ts';
import { type ApiMiddleware, valuesOf } from './request-state.ts';

/** Refuses what different readers would read differently: several Host headers, NUL in the address. */
export const refuseAmbiguity: ApiMiddleware = (ctx, next) => {
  const hosts = valuesOf(ctx.req, 'host').length;
  if (hosts > 1)
    throw new AppError('request_invalid', `the request has ${hosts} Host headers; one is allowed`);
  if (ctx.url.includes('%00')) throw new AppError('request_invalid', 'the address holds NUL (%00)');
  return next();
};
