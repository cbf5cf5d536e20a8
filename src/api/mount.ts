/** Puts declared routes on a router: authentication, then the body, then the handler, then its answer. */
import { METHODS } from 'node:http';
import type { Socket } from 'node:net';
import { Router } from '@koa/router';
import type { Context } from 'koa';
import { AppError } from '../errors/app-error.ts';
import type { Services } from '../services/services.ts';
import type { ApiConfig } from './limits.ts';
import { authenticate } from './middleware/authenticate.ts';
import { type ApiMiddleware, type RequestState, sentPath } from './middleware/request-state.ts';
import type { RateLimits } from './rate-limits.ts';
import { createReadBody, type ReadBody } from './read-body.ts';
import type { Answer, RawCall, Route } from './route.ts';
import { sendAnswer } from './send-answer.ts';

export interface MountOptions {
  readonly access: Services['access'];
  readonly config: ApiConfig;
  readonly limits: RateLimits;
  readonly closing: AbortSignal;
}

export function mountRoutes(routes: readonly Route[], options: MountOptions): Router<RequestState> {
  // The methods that Node knows: for each of them a path that is there answers 405, none is "not implemented".
  const router = new Router<RequestState>({ methods: METHODS });
  const readBody = createReadBody(options.config);
  for (const route of routes) {
    const guards = route.scope === null ? [] : [authenticate(options, route.scope)];
    const stack = [enter(route), ...guards, answer(route, readBody, options)];
    router.register(toRouterPath(route.path), [route.method], stack, { sensitive: true });
  }
  return router;
}

/** `/v1/media/{job_id}/{+file}` → `/v1/media/:job_id/*file` */
function toRouterPath(path: string): string {
  return path.replace(/\{\+(\w+)\}/g, '*$1').replace(/\{(\w+)\}/g, ':$1');
}

function enter(route: Route): ApiMiddleware {
  return (ctx, next) => {
    ctx.state.route = route;
    return route.withinMs === undefined ? next() : within(next(), route.withinMs);
  };
}

/** @throws AppError `unavailable` when the time is over; what is late is not sent any more */
async function within(answer: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new AppError('unavailable', `no answer of the database within ${ms} ms`, {
      retryAfterS: 1,
    });
    timer = setTimeout(() => reject(error), ms);
  });
  try {
    await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

function answer(route: Route, readBody: ReadBody, { limits, closing }: MountOptions): ApiMiddleware {
  return async (ctx) => {
    const { req, state } = ctx;
    const address = req.socket.remoteAddress ?? '';
    const keyId = state.caller?.key_id;
    if (keyId === undefined && route.body.kind === 'json') limits.sawOpenBody(address);
    const { bytes, body } = await readBody(req, route.body, keyId ?? address);
    if (route.isLong) allowSilence(req.socket);
    else if (closing.aborted) state.gone.abort('gone');
    const call: RawCall = {
      params: ctx.params,
      query: queryOf(route, ctx),
      headers: req.headers,
      body,
      bytes,
      path: sentPath(req),
      caller: state.caller ?? null,
      isProjectChosen: req.headers['x-project-id'] !== undefined || ctx.query.project_id !== undefined,
      request_id: state.request_id,
      requestHeaders: req.headers,
      signal: state.gone,
      setHeader: (name, value) => ctx.set(name, value),
      sawWrongKey: () => limits.sawWrongKey(address),
      opensSession: (opener) => limits.ask('session', opener),
    };
    const isOfHistory = route.opens === 'history' && keyId !== undefined;
    await sendAnswer(
      ctx,
      await (isOfHistory ? limits.inLine(keyId, () => readIfWanted(route, call)) : route.handle(call)),
    );
  };
}

/** @throws AppError `unavailable` when the client went away while it stood in line */
function readIfWanted(route: Route, call: RawCall): Promise<Answer> {
  if (call.signal.aborted) throw new AppError('unavailable', 'nobody waits for the answer any more');
  return route.handle(call);
}

/** Without `project_id`, which authentication has read. */
function queryOf({ scope, method }: Route, { query }: Context): Context['query'] {
  if (scope === null || (method !== 'GET' && method !== 'HEAD')) return query;
  const { project_id: _read, ...rest } = query;
  return rest;
}

/** Node sets the limit anew for the next request; a client that vanished is noticed by TCP. */
function allowSilence(socket: Socket): void {
  socket.setTimeout(0);
  socket.setKeepAlive(true, 30_000);
}
