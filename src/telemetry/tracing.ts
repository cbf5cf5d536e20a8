/**
 * Traces through the OpenTelemetry API. Node keeps the scopes, so no code has to pass them on. A span with a key takes
 * the first eight bytes of the key's SHA-256 as its id, so every process can compute it.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash, randomBytes } from 'node:crypto';
import {
  noTracing,
  type OpenSpan,
  type SpanStart,
  type Tracing,
  type WorkScope,
} from '@capstan/core/telemetry/telemetry';
import type { TraceContext } from '@capstan/core/telemetry/trace-context';
import {
  type Context,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  type TraceState,
  trace,
} from '@opentelemetry/api';

/** The source of spans for a collector. */
export interface SpanSource {
  readonly tracer: Tracer;
  readonly ids: Pick<PreparedIds, 'prepare'>;
}

const kinds = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL };

/** The state as it came: the API's own parser knows the keys of level 1 alone. */
function carry(state: string): TraceState {
  const carried = { get: () => undefined, set: () => carried, unset: () => carried, serialize: () => state };
  return carried;
}

function toContext(parent: TraceContext | null): Context {
  if (parent === null) return ROOT_CONTEXT;
  const { trace_id, span_id, is_sampled, state } = parent;
  const remote = { traceId: trace_id, spanId: span_id, traceFlags: is_sampled ? 1 : 0, isRemote: true };
  return trace.setSpanContext(ROOT_CONTEXT, { ...remote, traceState: carry(state) });
}

function startSpan({ tracer, ids }: SpanSource, start: SpanStart): OpenSpan {
  ids.prepare(start);
  const { name, kind, parent, startMs, attributes } = start;
  const options = {
    kind: kinds[kind],
    ...(attributes === undefined ? {} : { attributes: toMutable(attributes) }),
  };
  const timed = startMs === undefined ? options : { ...options, startTime: startMs };
  const span = tracer.startSpan(name, timed, toContext(parent));
  const { traceId, spanId, traceFlags } = span.spanContext();
  const { is_random, state } = parent ?? { is_random: false, state: '' };
  return {
    context: { trace_id: traceId, span_id: spanId, is_sampled: (traceFlags & 1) === 1, is_random, state },
    end: ({ attributes: more, error = null }) => {
      if (more !== undefined) span.setAttributes(toMutable(more));
      if (error !== null) span.setAttribute('error.type', error).setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    },
  };
}

/** The API's types ask for mutable lists, but it changes none. */
function toMutable(attributes: NonNullable<SpanStart['attributes']>) {
  return attributes as Record<string, string | number | boolean | string[]>;
}

/** @param source null: no spans are exported, and incoming context is passed on */
export function createTracing(source: SpanSource | null): Tracing {
  const scopes = new AsyncLocalStorage<WorkScope>();
  return {
    isOn: source !== null,
    start: source === null ? noTracing.start : (start) => startSpan(source, start),
    within: (scope, work) => scopes.run(scope, work),
    current: () => scopes.getStore() ?? null,
  };
}

/** Fields that every log line carries: its trace, span and run. */
export function toLogFields({ current }: Pick<Tracing, 'current'>): Record<string, string> {
  const scope = current();
  if (scope === null) return {};
  const context = scope.peek();
  return {
    ...(context === null ? {} : { trace_id: context.trace_id, span_id: context.span_id }),
    ...(scope.run_id === null ? {} : { run_id: scope.run_id }),
  };
}

/**
 * The SDK asks for ids without naming the span. It asks as soon as a span starts, so the span prepared last is meant.
 */
interface PreparedIds {
  prepare(span: Pick<SpanStart, 'key' | 'trace_id'>): void;
  generateSpanId(): string;
  generateTraceId(): string;
}

export function spanIdOf(key: string): string {
  return createHash('sha256').update(key).digest('hex').slice(0, 16);
}

/** Random bytes are pooled: eight bytes cost as much as thousands. */
const pooled = 4_096;

export function createSpanIds(): PreparedIds {
  let pool = '';
  let next: Pick<SpanStart, 'key' | 'trace_id'> = {};
  const take = (digits: number): string => {
    if (pool.length < digits) pool = randomBytes(pooled).toString('hex');
    const taken = pool.slice(0, digits);
    pool = pool.slice(digits);
    return /[1-9a-f]/.test(taken) ? taken : take(digits);
  };
  return {
    prepare: (span) => {
      next = span;
    },
    generateSpanId: () => (next.key === undefined ? take(16) : spanIdOf(next.key)),
    generateTraceId: () => next.trace_id ?? take(32),
  };
}
