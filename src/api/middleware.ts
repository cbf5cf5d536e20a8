/** Middleware for every request, in the order of app.ts, and the request state that it passes on. */

import { AsyncResource } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { CancelSource } from '@capstan/core/cancellation';
import { AppError } from '@capstan/core/errors/app-error';
import { isPlainObject } from '@capstan/core/json/values';
import { LiveList } from '@capstan/core/live-list';
import { createRequestScope, type RequestScope, type Telemetry } from '@capstan/core/telemetry/telemetry';
import { readTrace } from '@capstan/core/telemetry/trace-context';
import type { Middleware } from 'koa';
import type { Logger } from 'pino';
import type { Caller } from '../use-cases/access/caller.ts';
import { toProblem, translateFault } from './answer.ts';
import { findErrorForm } from './model-errors.ts';
import type { Route } from './route.ts';

export interface RequestState {
  request_id: string;
  /** Aborted when the answer is no longer wanted. */
  gone: CancelSource<'gone'>;
  /** Absent until a route matches the request. */
  route?: Route;
  /** Absent on open routes, and before the key is accepted. */
  caller?: Caller;
  /** The key itself; absent in the same cases. */
  key?: string;
  /** Counts the request as ended; absent in the same cases. */
  leave?: () => void;
}

export type ApiMiddleware = Middleware<RequestState>;
export type ApiContext = Parameters<ApiMiddleware>[0];

/** The path as it was sent, still percent-encoded. */
export function sentPath({ url = '/' }: IncomingMessage): string {
  const end = url.indexOf('?');
  return end < 0 ? url : url.slice(0, end);
}

/** Every value of a header, including repeated headers. */
export function valuesOf({ rawHeaders }: IncomingMessage, name: string): readonly string[] {
  const values: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const sent = rawHeaders[at] as string;
    if (sent.length === name.length && sent.toLowerCase() === name) values.push(rawHeaders[at + 1] as string);
  }
  return values;
}

export function isReading({ method }: IncomingMessage): boolean {
  return method === 'GET' || method === 'HEAD';
}

const accepted = /^[A-Za-z0-9._:-]{1,128}$/;

/** Accepts a valid `X-Request-Id` or creates one; every answer, log line and problem carries it. */
export function nameRequest({ req, res, state }: ApiContext): void {
  const sent = req.headers['x-request-id'];
  state.request_id = typeof sent === 'string' && accepted.test(sent) ? sent : randomUUID();
  res.setHeader('X-Request-Id', state.request_id);
}

/** Health checks poll these every few seconds: they are counted, but create no spans. */
const quietPaths = new Set(['/livez', '/readyz']);

interface AnsweredRequest {
  readonly route: string;
  readonly method: string;
  /** Undefined: the client disconnected before the answer. */
  readonly status: number | undefined;
}

function endSpan(scope: RequestScope, { route, method, status }: AnsweredRequest): void {
  if (quietPaths.has(route)) return;
  scope.end({
    error: status === undefined ? 'client_gone' : status >= 500 ? String(status) : null,
    attributes: {
      'http.request.method': method,
      'http.route': route,
      ...(status === undefined ? {} : { 'http.response.status_code': status }),
    },
  });
}

/** Counts each request and records a span: the root of a trace, or a child of the trace that the request names. */
export function observeRequest({ metrics, tracing }: Telemetry): ApiMiddleware {
  let inFlight = 0;
  return (ctx, next) => {
    const { req, res, state, method } = ctx;
    if (!metrics.isOn && !tracing.isOn && req.headers.traceparent === undefined) return next();
    const startedAt = performance.now();
    const { traceparent, tracestate } = req.headers;
    const parent = readTrace(traceparent?.toString(), tracestate?.toString());
    const routeOf = (): string => state.route?.path ?? 'none';
    const place = { parent, startMs: Date.now(), nameOf: () => `${method} ${routeOf()}` };
    const scope = tracing.isOn || parent !== null ? createRequestScope(tracing, place) : null;
    inFlight += 1;
    metrics.set('http_requests_in_flight', {}, inFlight);
    res.once('close', () => {
      inFlight -= 1;
      metrics.set('http_requests_in_flight', {}, inFlight);
      const answered = { route: routeOf(), method, status: res.headersSent ? res.statusCode : undefined };
      const labels = { ...answered, status: String(answered.status ?? 'none') };
      metrics.observe('http_request_duration_seconds', labels, (performance.now() - startedAt) / 1_000);
      if (scope !== null) endSpan(scope, answered);
    });
    return scope === null ? next() : tracing.within(scope, next);
  };
}

/** Writes one log line when the answer is sent or the client disconnects: never headers, bodies or queries. */
export function requestLog(logger: Logger): ApiMiddleware {
  return ({ req, res, state }, next) => {
    if (!logger.isLevelEnabled('info')) return next();
    const startedAt = performance.now();
    // Bound: the connection closes outside of the request, but the line names the request's trace.
    const write = (): void => {
      const path = state.route?.path ?? 'none';
      const level = quietPaths.has(path) ? 'debug' : 'info';
      if (!logger.isLevelEnabled(level)) return;
      const line = {
        request_id: state.request_id,
        method: req.method,
        route: path,
        status: res.headersSent ? res.statusCode : undefined,
        ms: Math.round(performance.now() - startedAt),
        key_id: state.caller?.key_id,
        project_id: state.caller?.project_id,
        ...(res.writableFinished ? {} : { aborted: true }),
      };
      logger[level](line, 'request');
    };
    const place = new AsyncResource('request');
    res.once('close', () => place.runInAsyncScope(write));
    return next();
  };
}

export interface OpenRequest {
  readonly res: ServerResponse;
  readonly state: RequestState;
}

export interface Draining {
  /** Counts a request as open until its connection closes or its answer has ended. */
  readonly enter: (request: OpenRequest) => void;
  /** Requests whose answers have not ended. */
  readonly open: Pick<LiveList<OpenRequest>, 'size' | 'members'>;
  /** Aborted when the server closes. */
  readonly closing: AbortSignal;
  readonly begin: () => void;
}

/**
 * A request is `gone` when its answer has ended, when its connection closes and, unless its route is long, when the
 * server closes: all work for it stops. A closing server asks every client to reconnect.
 */
export function createDraining(): Draining {
  const closing = new AbortController();
  const open = new LiveList<OpenRequest>();
  return {
    enter: ({ res, state }) => {
      state.gone = new CancelSource();
      const entry = open.add({ res, state });
      res.once('close', () => {
        open.remove(entry);
        state.leave?.();
        state.gone.abort('gone');
      });
      if (closing.signal.aborted) askToReconnect(res);
    },
    open,
    closing: closing.signal,
    begin: () => {
      closing.abort();
      for (const { res, state } of open.members()) {
        askToReconnect(res);
        if (state.route?.isLong !== true) state.gone.abort('gone');
      }
    },
  };
}

function askToReconnect(res: ServerResponse): void {
  if (!res.headersSent) res.setHeader('Connection', 'close');
}

const graceMs = 5_000;

/**
 * For answers that are sent before the whole body arrived: the rest is discarded for 5 s, so that the client reads the
 * answer instead of a reset. Then the connection is cut.
 */
function discardRest(req: IncomingMessage, res: ServerResponse): void {
  if (req.complete) return;
  res.once('finish', () => {
    if (req.complete) return;
    req.resume();
    const timer = setTimeout(() => req.socket.destroy(), graceMs);
    const stop = (): void => clearTimeout(timer);
    req.once('end', stop);
    req.once('close', stop);
  });
}

/**
 * Sends every error as problem+json, or in the form of the protocol that the path belongs to. Causes are logged with the
 * request's id and sent nowhere else. Discards what still comes of a body that was refused. Ambiguous requests go no
 * further.
 */
export function problem(logger: Logger): ApiMiddleware {
  return async (ctx, next) => {
    try {
      refuseAmbiguity(ctx);
      await next();
    } catch (thrown) {
      const error = translateFault(thrown);
      const { request_id } = ctx.state;
      const about = { request_id, route: ctx.state.route?.path };
      if (isGone(ctx.req)) return void logger.debug({ ...about, err: error }, 'client gone');
      if (error.status >= 500) logger.error({ ...about, err: error.cause ?? error }, error.code);
      if (ctx.headerSent) return void ctx.res.destroy();
      const path = sentPath(ctx.req);
      const form = findErrorForm(path);
      setRetryAfter(ctx, error, form !== null);
      if (form !== null) nameDecision(ctx, error);
      ctx.set('Content-Type', form === null ? 'application/problem+json' : 'application/json');
      ctx.status = form?.statusOf(error) ?? error.status;
      ctx.body = JSON.stringify(form?.write(error) ?? toProblem(error, { instance: path, request_id }));
    } finally {
      discardRest(ctx.req, ctx.res);
    }
  };
}

/** A body of a foreign protocol has no place for the decision of a call that was made. */
function nameDecision(ctx: ApiContext, { details }: AppError): void {
  const { decision = null } = isPlainObject(details) ? details : {};
  if (!isPlainObject(decision) || decision.chosen === null) return;
  if (typeof decision.decision_id === 'string') ctx.set('X-Capstan-Decision', decision.decision_id);
}

/** @param isExact programs of a foreign protocol read milliseconds too */
function setRetryAfter(ctx: Parameters<ApiMiddleware>[0], { retryAfterS }: AppError, isExact: boolean): void {
  if (retryAfterS === undefined) return;
  ctx.set('Retry-After', String(Math.ceil(retryAfterS)));
  if (isExact) ctx.set('retry-after-ms', String(Math.ceil(retryAfterS * 1_000)));
}

function isGone({ destroyed, complete }: IncomingMessage): boolean {
  return destroyed && !complete;
}

/** Refuses ambiguous requests: several Host headers, NUL or damaged escapes in the address. */
function refuseAmbiguity(ctx: ApiContext): void {
  const hosts = valuesOf(ctx.req, 'host').length;
  if (hosts > 1)
    throw new AppError('request_invalid', `the request has ${hosts} Host headers; exactly one is allowed`);
  if (ctx.url.includes('%00')) throw new AppError('request_invalid', 'the address holds NUL (%00)');
  const path = sentPath(ctx.req);
  if (path.includes('%') && !isDecodable(path))
    throw new AppError('not_found', `there is no ${path.slice(0, 200)} here`);
}

function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

/** Answers requests without a route: 405, or 204 to OPTIONS, with the router's `Allow` for the path, else 404. */
export const notFound: ApiMiddleware = async (ctx, next) => {
  await next();
  const allowed = String(ctx.res.getHeader('Allow') ?? '')
    .split(', ')
    .sort()
    .join(', ');
  if (allowed === '') throw new AppError('not_found', `there is no ${sentPath(ctx.req).slice(0, 200)} here`);
  ctx.set('Allow', allowed);
  if (ctx.method !== 'OPTIONS')
    throw new AppError('method_not_allowed', `${ctx.method} is not supported here; allowed: ${allowed}`);
  ctx.status = 204;
};
