import { AppError } from '../../errors/app-error.ts';
import { type ApiMiddleware, sentPath } from './request-state.ts';

/** Requests that no route took: 405, or 204 to OPTIONS, with the `Allow` that the router found for the path, else 404. */
export const notFound: ApiMiddleware = async (ctx, next) => {
  await next();
  const allowed = String(ctx.res.getHeader('Allow') ?? '')
    .split(', ')
    .sort()
    .join(', ');
  if (allowed === '') throw new AppError('not_found', `there is no ${sentPath(ctx.req).slice(0, 200)} here`);
  ctx.set('Allow', allowed);
  if (ctx.method !== 'OPTIONS')
    throw new AppError('method_not_allowed', `${ctx.method} is not possible here; ${allowed} is`);
  ctx.status = 204;
};
