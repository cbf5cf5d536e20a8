/**
 * A process's telemetry for any listener: its counters and its traces. The code that counts does not know the reader;
 * switched off, all of it does nothing.
 */

import type { CounterName, GaugeName, HistogramName, LabelsOf } from './metric-table.ts';
import { type TraceContext, traceIdOf } from './trace-context.ts';

/** One value of a metric. */
interface Sample<Name extends GaugeName> {
  readonly labels: LabelsOf<Name>;
  readonly value: number;
}

export interface Metrics {
  /** Whether a reader may exist; work that only serves metrics can be skipped otherwise. */
  readonly isOn: boolean;
  add<Name extends CounterName>(name: Name, labels: LabelsOf<Name>, by?: number): void;
  observe<Name extends HistogramName>(name: Name, labels: LabelsOf<Name>, value: number): void;
  set<Name extends GaugeName>(name: Name, labels: LabelsOf<Name>, value: number): void;
  /** Replaces all values of the gauge; samples with equal labels are added up. */
  replace<Name extends GaugeName>(name: Name, samples: readonly Sample<Name>[]): void;
  /** Registers work before each scrape; a failure there does not affect the others. */
  onScrape(refresh: () => void | Promise<void>): void;
}

function nothing(): void {
  // There is no reader.
}

export const noMetrics: Metrics = {
  isOn: false,
  add: nothing,
  observe: nothing,
  set: nothing,
  replace: nothing,
  onScrape: nothing,
};

// Traces of a request, the run that it starts, steps and attempts. Ids of spans of runs and steps derive from the ids
// of those objects, so that a child can name a parent that another process reports later. Without recording, an
// incoming context is passed on unchanged.

export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[]>>;

export interface SpanStart {
  readonly name: string;
  readonly kind: 'server' | 'client' | 'internal';
  /** Null: the span begins a trace. */
  readonly parent: TraceContext | null;
  /** The span's id derives from this key; default: a random id. */
  readonly key?: string;
  /** The id of the trace that the span begins; default: a random one. */
  readonly trace_id?: string;
  /** Unix milliseconds; default: now. */
  readonly startMs?: number;
  readonly attributes?: SpanAttributes;
}

export interface SpanEnd {
  readonly attributes?: SpanAttributes;
  /** The reason for the failure, in a word. */
  readonly error?: string | null;
}

export interface OpenSpan {
  /** The context for child spans; the parent's context where the span is not recorded. */
  readonly context: TraceContext | null;
  /** A span is reported only when it ends. */
  end(end: SpanEnd): void;
}

/** The request or run that the current work belongs to. */
export interface WorkScope {
  /** The span that the current work belongs to; may begin it. */
  trace(): TraceContext | null;
  /** The known span, without beginning one. */
  peek(): TraceContext | null;
  /** The trace context for a new run; null: the run begins a trace. */
  traceOfRun(runId: string): TraceContext | null;
  readonly run_id: string | null;
}

export interface Tracing {
  start(span: SpanStart): OpenSpan;
  within<Result>(scope: WorkScope, work: () => Result): Result;
  current(): WorkScope | null;
  /** Whether spans are reported. */
  readonly isOn: boolean;
}

export const noTracing: Tracing = {
  start: ({ parent }) => ({ context: parent, end: () => undefined }),
  within: (_scope, work) => work(),
  current: () => null,
  isOn: false,
};

export function scopeOf(context: TraceContext | null, runId: string | null): WorkScope {
  return { trace: () => context, peek: () => context, traceOfRun: () => context, run_id: runId };
}

export interface RequestScope extends WorkScope {
  end(end: SpanEnd): void;
}

/**
 * The scope of a request. Its span begins on first use, so that a request without a trace joins the trace of the first
 * run that it starts. Further runs of the same request begin their own traces.
 */
export function createRequestScope(
  tracing: Tracing,
  { parent, startMs, nameOf }: { parent: TraceContext | null; startMs: number; nameOf: () => string },
): RequestScope {
  let span: OpenSpan | null = null;
  const begin = (own: Pick<SpanStart, 'trace_id'> = {}): OpenSpan => {
    span ??= tracing.start({ name: nameOf(), kind: 'server', parent, startMs, ...own });
    return span;
  };
  return {
    run_id: null,
    trace: () => begin().context,
    peek: () => span?.context ?? parent,
    traceOfRun: (runId) => {
      if (parent !== null) return begin().context;
      return span === null ? begin({ trace_id: traceIdOf(runId) }).context : null;
    },
    end: (end) => begin().end(end),
  };
}

export interface Telemetry {
  readonly metrics: Metrics;
  readonly tracing: Tracing;
}

export const noTelemetry: Telemetry = { metrics: noMetrics, tracing: noTracing };
