import { AppError } from '../../errors/app-error.ts';
import { type ApiMiddleware, sentPath, valuesOf } from './request-state.ts';

/** Refuses what different readers would read differently: several Host headers, NUL or damaged escapes in the address. */
export const refuseAmbiguity: ApiMiddleware = (ctx, next) => {
  const hosts = valuesOf(ctx.req, 'host').length;
  if (hosts > 1)
    throw new AppError('request_invalid', `the request has ${hosts} Host headers; one is allowed`);
  if (ctx.url.includes('%00')) throw new AppError('request_invalid', 'the address holds NUL (%00)');
  const path = sentPath(ctx.req);
  if (path.includes('%') && !isDecodable(path))
    throw new AppError('not_found', `there is no ${path.slice(0, 200)} here`);
  return next();
};

function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}
