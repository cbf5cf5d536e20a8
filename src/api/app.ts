/**
 * The HTTP API as one request listener. Dependencies are passed in; nothing is kept between requests. Declared routes
 * are mounted on a router: authentication, then the body, then the handler, then its answer.
 */
import { METHODS, type RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { Router } from '@koa/router';
import Koa, { type Context } from 'koa';
import { within } from '../core/pacing.ts';
import { AppError } from '../errors/app-error.ts';
import { isStillValid } from '../services/access/verified-keys.ts';
import type { ServerCtx } from '../services/context.ts';
import { sendAnswer } from './answer.ts';
import { authenticate, watchRevocations } from './authentication.ts';
import { createReadBody, type ReadBody } from './body.ts';
import { createConsoleFiles } from './console.ts';
import { createRateLimits, type RateLimits } from './limits.ts';
import {
  type ApiMiddleware,
  createDraining,
  discardRest,
  notFound,
  observeRequest,
  problem,
  type RequestState,
  refuseAmbiguity,
  requestId,
  requestLog,
  sentPath,
} from './middleware.ts';
import type { RawCall, Route } from './route.ts';
import { createRoutes } from './routes.ts';
import { securityHeaders } from './security-headers.ts';

interface MountOptions {
  readonly server: ServerCtx;
  readonly limits: RateLimits;
  readonly closing: AbortSignal;
}

/** The router tries its routes one after the other, a hundred of them: these have one of their own, which is asked first. */
const frequentPaths: ReadonlySet<string> = new Set([
  '/v1/capabilities/{name}/exec',
  '/v1/capabilities/{name}/heartbeat',
  '/openai/v1/chat/completions',
  '/mcp',
  '/anthropic/v1/messages',
]);

interface Routers {
  readonly frequent: Router<RequestState>;
  readonly other: Router<RequestState>;
}

function mountRoutes(routes: readonly Route[], options: MountOptions): Routers {
  // All methods that Node knows: a known path answers 405 to a wrong one, never "not implemented".
  const create = () => new Router<RequestState>({ methods: METHODS });
  const routers = { frequent: create(), other: create() };
  const readBody = createReadBody(options.server.config);
  for (const route of routes) {
    const guards = route.scope === null ? [] : [authenticate(options, route.scope)];
    const stack = [enter(route), ...guards, answer(route, readBody, options)];
    const router = frequentPaths.has(route.path) ? routers.frequent : routers.other;
    router.register(toRouterPath(route.path), [route.method], stack, { sensitive: true });
  }
  return routers;
}

/** `/v1/media/{job_id}/{+file}` → `/v1/media/:job_id/*file` */
function toRouterPath(path: string): string {
  return path.replace(/\{\+(\w+)\}/g, '*$1').replace(/\{(\w+)\}/g, ':$1');
}

function enter(route: Route): ApiMiddleware {
  return (ctx, next) => {
    ctx.state.route = route;
    return route.withinMs === undefined ? next() : answerWithin(next(), route.withinMs);
  };
}

/** @throws AppError `unavailable` when the time is over; a late answer is discarded */
function answerWithin(answer: Promise<unknown>, ms: number): Promise<unknown> {
  return within(answer, ms, () => {
    throw new AppError('unavailable', `no answer of the database within ${ms} ms`, { retryAfterS: 1 });
  });
}

function answer(route: Route, readBody: ReadBody, { server, limits, closing }: MountOptions): ApiMiddleware {
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
      isClosing: closing.aborted,
      requestHeaders: req.headers,
      signal: state.gone,
      setHeader: (name, value) => ctx.set(name, value),
      usedTokens: (tokens) => {
        if (state.caller !== undefined) limits.usedTokens(state.caller, tokens);
      },
      sawWrongKey: () => limits.sawWrongKey(address),
      opensSession: (opener) => limits.ask('session', opener),
      asksToStart: () => limits.ask('start', keyId ?? address),
    };
    const giveAnswer = async (): Promise<void> => sendAnswer(ctx, await route.handle(server, call));
    const isOfHistory = route.opens === 'history' && keyId !== undefined;
    // Writing and compressing a long list takes as long as reading it.
    await (isOfHistory ? limits.inLine(keyId, () => ifWanted(call, giveAnswer)) : giveAnswer());
  };
}

/** @throws AppError `unavailable` when the client disconnected while its request was queued */
function ifWanted({ signal }: RawCall, giveAnswer: () => Promise<void>): Promise<void> {
  if (signal.aborted) throw new AppError('unavailable', 'the client has disconnected');
  return giveAnswer();
}

/** The query without `project_id`, which authentication has read. */
function queryOf({ scope, method }: Route, { query }: Context): Context['query'] {
  if (scope === null || (method !== 'GET' && method !== 'HEAD')) return query;
  const { project_id: _read, ...rest } = query;
  return rest;
}

/** Node resets the limit for the next request. TCP detects a client that vanished. */
function allowSilence(socket: Socket): void {
  socket.setTimeout(0);
  socket.setKeepAlive(true, 30_000);
}

interface AppOptions {
  readonly ctx: ServerCtx;
  /** The folder of the console's build, which may not exist yet; without it there is no console. */
  readonly consoleFolder?: string;
}

export interface App {
  readonly handle: RequestListener;
  /** From now on, answers close their connections, and open streams and waits end. */
  readonly drain: () => void;
}

export function createApp({ ctx, consoleFolder }: AppOptions): App {
  const { config, logger, telemetry } = ctx;
  const draining = createDraining();
  const { closing } = draining;
  watchRevocations(draining, (key) => isStillValid(ctx, key));
  const console = consoleFolder === undefined ? undefined : createConsoleFiles(consoleFolder);
  const routes = createRoutes(config, console);
  const limits = createRateLimits(config, () => performance.now());
  const { frequent, other } = mountRoutes(routes, { server: ctx, limits, closing });
  const koa = new Koa<RequestState>();
  koa.on('error', (err: unknown) => logger.debug({ err }, 'answer cut off'));
  koa
    .use(requestId)
    .use(observeRequest(telemetry))
    .use(requestLog(logger))
    .use(draining.middleware)
    .use(discardRest)
    .use(securityHeaders)
    .use(problem(logger))
    .use(refuseAmbiguity)
    .use(frequent.routes())
    .use(other.routes())
    .use(notFound)
    .use(other.allowedMethods());
  return { handle: koa.callback(), drain: draining.begin };
}
