/**
 * The HTTP API as one request listener. Dependencies are passed in; nothing is kept between requests. Declared routes
 * are mounted on a router: authentication, then the body, then the handler, then its answer.
 */
import { type IncomingMessage, METHODS, type RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { AppError } from '@capstan/core/errors/app-error';
import { within } from '@capstan/core/pacing';
import { Router } from '@koa/router';
import Koa, { type Context } from 'koa';
import type { ServerCtx } from '../context.ts';
import { isStillValid } from '../use-cases/access/identification.ts';
import { sendAnswer } from './answer.ts';
import { createAuthentication, refuseForeignOrigin, watchRevocations } from './authentication.ts';
import { createReadBody, type ReadBody, type ReceivedBody } from './body.ts';
import { createConsoleFiles } from './console.ts';
import { createRateLimits, type RateLimits } from './limits.ts';
import {
  type ApiContext,
  type ApiMiddleware,
  createDraining,
  isReading,
  nameRequest,
  notFound,
  observeRequest,
  problem,
  type RequestState,
  requestLog,
  sentPath,
} from './middleware.ts';
import type { RawCall, Route } from './route.ts';
import { createRoutes } from './routes.ts';
import { setSecurityHeaders } from './security-headers.ts';

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
    const router = frequentPaths.has(route.path) ? routers.frequent : routers.other;
    const answering = answer(route, readBody, options);
    router.register(toRouterPath(route.path), [route.method], answering, { sensitive: true });
  }
  return routers;
}

/** `/v1/media/{job_id}/{+file}` → `/v1/media/:job_id/*file` */
function toRouterPath(path: string): string {
  return path.replace(/\{\+(\w+)\}/g, '*$1').replace(/\{(\w+)\}/g, ':$1');
}

/** @throws AppError `unavailable` when the time is over; a late answer is discarded */
function answerWithin(answer: Promise<unknown>, ms: number): Promise<unknown> {
  return within(answer, ms, () => {
    throw new AppError('unavailable', `no answer of the database within ${ms} ms`, { retryAfterS: 1 });
  });
}

/** One function and not three of the router: each of its layers costs a call a microsecond. */
function answer(route: Route, readBody: ReadBody, options: MountOptions): ApiMiddleware {
  const { server, limits, closing } = options;
  const authenticate = route.scope === null ? null : createAuthentication(options, route.scope);
  const give = async (ctx: ApiContext): Promise<void> => {
    ctx.state.route = route;
    if (route.isForPrograms) refuseForeignOrigin(ctx.req.headers, server.config.PUBLIC_URL);
    if (authenticate !== null) await authenticate(ctx);
    const { req, state } = ctx;
    const sender = state.caller?.key_id;
    if (sender === undefined && route.body.kind === 'json') limits.sawOpenBody(addressOf(req));
    const received = await readBody(req, route.body, sender ?? addressOf(req));
    if (route.isLong) allowSilence(req.socket);
    else if (closing.aborted) state.gone.abort('gone');
    const call = toRawCall(ctx, received, options);
    if (route.opens !== 'history' || sender === undefined)
      return sendAnswer(ctx, await route.handle(server, call));
    // Writing and compressing a long list takes as long as reading it.
    await limits.inLine(sender, async () => {
      if (call.signal.aborted) throw new AppError('unavailable', 'the client has disconnected'); // while it was queued
      return sendAnswer(ctx, await route.handle(server, call));
    });
  };
  const { withinMs } = route;
  return withinMs === undefined ? give : (ctx) => answerWithin(give(ctx), withinMs);
}

function addressOf({ socket }: IncomingMessage): string {
  return socket.remoteAddress ?? '';
}

function toRawCall(
  ctx: ApiContext,
  { bytes, body }: ReceivedBody,
  { limits, closing }: Pick<MountOptions, 'limits' | 'closing'>,
): RawCall {
  const { req, state, query } = ctx;
  const { caller = null } = state;
  return {
    params: ctx.params,
    query: caller !== null && isReading(req) ? withoutProject(query) : query,
    headers: req.headers,
    body,
    bytes,
    path: sentPath(req),
    caller,
    isProjectChosen: req.headers['x-project-id'] !== undefined || query.project_id !== undefined,
    request_id: state.request_id,
    isClosing: closing.aborted,
    requestHeaders: req.headers,
    signal: state.gone,
    setHeader: (name, value) => ctx.set(name, value),
    sawWrongKey: () => limits.sawWrongKey(addressOf(req)),
    opensSession: (opener) => limits.ask('session', opener),
    asksToStart: (holder) => limits.ask('start', holder ?? caller?.key_id ?? addressOf(req)),
  };
}

/** The query without `project_id`, which authentication has read. */
function withoutProject({ project_id: _read, ...rest }: Context['query']): Context['query'] {
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
    .use((request, next) => {
      nameRequest(request);
      draining.enter(request);
      setSecurityHeaders(request);
      return next();
    })
    .use(observeRequest(telemetry))
    .use(requestLog(logger))
    .use(problem(logger))
    .use(frequent.routes())
    .use(other.routes())
    .use(notFound)
    .use(other.allowedMethods());
  return { handle: koa.callback(), drain: draining.begin };
}
