/** Puts declared routes on a router: authentication, then the body, then the handler, then its answer. */
import { Readable } from 'node:stream';
import { Router, type RouterMiddleware } from '@koa/router';
import type { ParameterizedContext } from 'koa';
import type { Services } from '../services/services.ts';
import type { ApiConfig } from './limits.ts';
import { authenticate } from './middleware/authenticate.ts';
import { readBody } from './middleware/read-body.ts';
import type { ApiMiddleware, RequestState } from './middleware/request-state.ts';
import type { Answer, Route } from './route.ts';

export interface MountOptions {
  readonly access: Services['access'];
  readonly config: ApiConfig;
  readonly closing: AbortSignal;
}

/** `/v1/media/{job_id}/{+file}` → `/v1/media/:job_id/*file` */
const toRouterPath = (path: string): string =>
  path.replace(/\{\+(\w+)\}/g, '*$1').replace(/\{(\w+)\}/g, ':$1');

const send = (ctx: ParameterizedContext<RequestState>, { status, headers, body }: Answer): void => {
  ctx.status = status;
  if (body === undefined) ctx.remove('Content-Type');
  else if (body instanceof Readable && ctx.method === 'HEAD') body.destroy();
  else if (body instanceof Readable || Buffer.isBuffer(body) || typeof body === 'string') ctx.body = body;
  else {
    ctx.body = JSON.stringify(body);
    ctx.type = 'application/json';
  }
  for (const [name, value] of Object.entries(headers ?? {})) ctx.set(name, value);
};

/** Aborted when the answer's connection closes before its end, or the server is closing. */
const leavingSignal = (
  ctx: ParameterizedContext<RequestState>,
  closing: AbortSignal | undefined,
): AbortSignal => {
  // Not AbortSignal.any: with a signal that lives as long as the process it keeps every request in memory.
  const gone = new AbortController();
  const leave = (): void => {
    closing?.removeEventListener('abort', leave);
    if (!ctx.res.writableFinished) gone.abort('gone');
  };
  closing?.addEventListener('abort', leave, { once: true });
  ctx.res.once('close', leave);
  if (closing?.aborted || ctx.res.destroyed) leave();
  return gone.signal;
};

/** Node sets the limit anew for the next request; a client that vanished is noticed by TCP. */
const allowSilence = ({ socket }: ParameterizedContext<RequestState>['req']): void => {
  socket.setTimeout(0);
  socket.setKeepAlive(true, 30_000);
};

const enter =
  (route: Route): ApiMiddleware =>
  async (ctx, next) => {
    ctx.state.route = route.path;
    await next();
  };

const handle =
  (route: Route, { config, closing }: MountOptions): RouterMiddleware<RequestState> =>
  async (ctx) => {
    const { bytes, body } = await readBody(ctx.req, route.body, config);
    if (route.scope !== null) ctx.set('Cache-Control', 'no-store');
    if (route.isLong) allowSilence(ctx.req);
    const answer = await route.handle({
      params: { ...ctx.params },
      query: { ...ctx.query },
      headers: ctx.req.headers,
      body,
      bytes,
      caller: ctx.state.caller ?? null,
      path: ctx.path,
      requestHeaders: ctx.req.headers,
      signal: leavingSignal(ctx, route.isLong ? undefined : closing),
      setHeader: (name, value) => ctx.set(name, value),
    });
    send(ctx, answer);
  };

export const mountRoutes = (routes: readonly Route[], options: MountOptions): Router<RequestState> => {
  const router = new Router<RequestState>({ sensitive: true });
  for (const route of routes) {
    const guards = route.scope === null ? [] : [authenticate(options.access, route.scope)];
    router.register(toRouterPath(route.path), [route.method], [
      enter(route),
      ...guards,
      handle(route, options),
    ] as RouterMiddleware<RequestState>[]);
  }
  return router;
};
