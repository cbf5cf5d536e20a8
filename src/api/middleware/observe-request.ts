import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import { parseTraceParent } from '../../core/telemetry/trace-context.ts';
import { createRequestScope, type RequestScope } from '../../core/telemetry/tracing.ts';
import type { ApiMiddleware } from './request-state.ts';

/** Asked every few seconds by whoever watches a process: they are counted, and make no spans. */
const quietPaths = new Set(['/livez', '/readyz']);

interface AnsweredRequest {
  readonly route: string;
  readonly method: string;
  /** Undefined: the client had gone before. */
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

/** Counts each request, and makes it a span: the first of a trace, or the next of the one that it brings. */
export function observeRequest({ metrics, tracing }: Telemetry): ApiMiddleware {
  let inFlight = 0;
  return (ctx, next) => {
    const { req, res, state, method } = ctx;
    if (!metrics.isOn && !tracing.isOn && req.headers.traceparent === undefined) return next();
    const startedAt = performance.now();
    const parent = parseTraceParent(req.headers.traceparent?.toString());
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
