import type { Router } from '@koa/router';
import { AppError } from '../../errors.ts';
import type { ApiMiddleware, RequestState } from './request-state.ts';

const methodsOf = (router: Router<RequestState>, path: string): string[] => {
  const methods = router.match(path, 'GET').path.flatMap((layer) => layer.methods);
  return [...new Set(methods)].sort();
};

/** For requests that no route took: 405 with `Allow` when the path exists, else 404. */
export const notFound =
  (router: Router<RequestState>): ApiMiddleware =>
  async (ctx) => {
    const allowed = methodsOf(router, ctx.path);
    if (allowed.length === 0) throw new AppError('not_found', `there is no ${ctx.path.slice(0, 200)} here`);
    ctx.set('Allow', allowed.join(', '));
    if (ctx.method !== 'OPTIONS')
      throw new AppError(
        'method_not_allowed',
        `${ctx.method} is not possible here; ${allowed.join(', ')} is`,
      );
    ctx.status = 204;
  };
