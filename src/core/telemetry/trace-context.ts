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
const nothing = /^0+$/;

/** Null also for what is none: a trace is never a reason to refuse a request. */
export function parseTraceParent(text: string | null | undefined): TraceContext | null {
  const [, version, trace_id = '', span_id = '', flags = '', rest] = form.exec(text ?? '') ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && rest !== undefined)) return null;
  if (nothing.test(trace_id) || nothing.test(span_id)) return null;
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
