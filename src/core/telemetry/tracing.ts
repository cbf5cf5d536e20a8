/**
 * Traces as the code makes them: a request, the run that it starts, steps, attempts. Spans of runs and steps have ids that
 * follow from what they are of, so that a child names a parent that another process will tell later. Where nothing is
 * recorded, what came in is passed on as it is.
 */
import { type TraceContext, traceIdOf } from './trace-context.ts';

export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[]>>;

export interface SpanStart {
  readonly name: string;
  readonly kind: 'server' | 'client' | 'internal';
  /** Null: a trace begins with it. */
  readonly parent: TraceContext | null;
  /** Its id follows from this; default: a random one. */
  readonly key?: string;
  /** Of the trace that begins with it; default: a random one. */
  readonly trace_id?: string;
  /** Unix milliseconds; default: now. */
  readonly startMs?: number;
  readonly attributes?: SpanAttributes;
}

export interface SpanEnd {
  readonly attributes?: SpanAttributes;
  /** Why it failed, in a word. */
  readonly error?: string | null;
}

export interface OpenSpan {
  /** What its children name; that of its parent where it is not recorded. */
  readonly context: TraceContext | null;
  /** One that is never ended is never told. */
  end(end: SpanEnd): void;
}

/** What is being worked for, in whatever is called from there. */
export interface WorkScope {
  /** The span that what happens now is part of. */
  trace(): TraceContext | null;
  /** The same, as far as it is known: looking begins nothing. */
  peek(): TraceContext | null;
  /** What a run that is started now is part of; null: it begins a trace. */
  traceOfRun(runId: string): TraceContext | null;
  readonly run_id: string | null;
}

export interface Tracing {
  start(span: SpanStart): OpenSpan;
  within<Result>(scope: WorkScope, work: () => Result): Result;
  current(): WorkScope | null;
  /** Whether spans are told to anybody. */
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
 * The scope of a request. Its span begins with what first needs it, so that a request without a trace of its own becomes
 * part of that of the run which it starts; further runs of the same request begin their own.
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
