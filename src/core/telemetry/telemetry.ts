/**
 * What a process tells of itself, to whoever listens: where the code counts, and its traces. Who counts does not
 * know who reads it; switched off, all of it does nothing.
 */
import type { CounterName, GaugeName, HistogramName, LabelsOf } from './metric-table.ts';

/** One value of a metric. */
interface Sample<Name extends GaugeName> {
  readonly labels: LabelsOf<Name>;
  readonly value: number;
}

export interface Metrics {
  /** Whether anybody may read it: what only counts need not be done for nobody. */
  readonly isOn: boolean;
  add<Name extends CounterName>(name: Name, labels: LabelsOf<Name>, by?: number): void;
  observe<Name extends HistogramName>(name: Name, labels: LabelsOf<Name>, value: number): void;
  set<Name extends GaugeName>(name: Name, labels: LabelsOf<Name>, value: number): void;
  /** In place of all values that the gauge had; those whose labels are equal are added up. */
  replace<Name extends GaugeName>(name: Name, samples: readonly Sample<Name>[]): void;
  /** To be done before each scrape: what fails there leaves the others alone. */
  onScrape(refresh: () => void | Promise<void>): void;
}

function nothing(): void {
  // Nobody reads it.
}

export const noMetrics: Metrics = {
  isOn: false,
  add: nothing,
  observe: nothing,
  set: nothing,
  replace: nothing,
  onScrape: nothing,
};

/**
 * Where in a trace something belongs, as W3C Trace Context writes it in the header `traceparent`. A run that nobody gave a
 * trace begins one whose id is its own UUID, so that its trace is found by its run.
 */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly trace_id: string;
  /** 16 hexadecimal digits. */
  readonly span_id: string;
  /** Whether whoever began the trace records it. */
  readonly is_sampled: boolean;
}

const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const allZero = /^0+$/;

/** Null also for what is none: a trace is never a reason to refuse a request. */
export function parseTraceParent(text: string | null | undefined): TraceContext | null {
  const [, version, trace_id = '', span_id = '', flags = '', rest] = form.exec(text ?? '') ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && rest !== undefined)) return null;
  if (allZero.test(trace_id) || allZero.test(span_id)) return null;
  return { trace_id, span_id, is_sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function formatTraceParent({ trace_id, span_id, is_sampled }: TraceContext): string {
  return `00-${trace_id}-${span_id}-${is_sampled ? '01' : '00'}`;
}

/** @param id a prefix and a UUID */
function hexOf(id: string): string {
  return id.slice(id.indexOf('_') + 1).replaceAll('-', '');
}

/** Of a trace that begins with what has this id. */
export function traceIdOf(id: string): string {
  return hexOf(id);
}

/** When what has this id was made, Unix milliseconds: a UUIDv7 begins with that. */
export function madeAtMs(id: string): number {
  return Number.parseInt(hexOf(id).slice(0, 12), 16);
}

// Traces as the code makes them: a request, the run that it starts, steps, attempts. Spans of runs and steps have
// ids that follow from what they are of, so that a child names a parent that another process will tell later.
// Where nothing is recorded, what came in is passed on as it is.

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

export interface Telemetry {
  readonly metrics: Metrics;
  readonly tracing: Tracing;
}

export const noTelemetry: Telemetry = { metrics: noMetrics, tracing: noTracing };
