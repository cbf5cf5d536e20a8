/**
 * A position in a trace, as W3C Trace Context writes it in the headers `traceparent` and `tracestate` (levels 1 and 2).
 * An invalid header counts as none: a trace is never a reason to refuse a request. A run without a given trace begins
 * one with its own UUID as the id, so that the run's id finds its trace.
 */

export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly trace_id: string;
  /** 16 hexadecimal digits. */
  readonly span_id: string;
  /** Whether the caller that began the trace records it. */
  readonly is_sampled: boolean;
  /** Whether the last seven bytes of the trace's id are random. */
  readonly is_random: boolean;
  /** The data of tracing systems about the trace, for one another: `key=value,key=value`; empty: nothing. */
  readonly state: string;
}

/** The headers of a request that names its position. */
export interface TraceHeaders {
  readonly traceparent: string;
  readonly tracestate?: string;
}

const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const allZero = /^0+$/;

/** Null without a valid `traceparent`, whatever the state. */
export function readTrace(
  traceparent: string | null | undefined,
  tracestate?: string | null,
): TraceContext | null {
  const [, version, trace_id = '', span_id = '', digits = '', rest] = form.exec(traceparent ?? '') ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && rest !== undefined)) return null;
  if (allZero.test(trace_id) || allZero.test(span_id)) return null;
  const flags = Number.parseInt(digits, 16);
  const [is_sampled, is_random] = [(flags & 1) === 1, (flags & 2) === 2];
  return { trace_id, span_id, is_sampled, is_random, state: readState(tracestate ?? '') };
}

/** A key and a value. Level 2 allows every key of level 1. */
const member = /^([a-z\d][a-z\d_\-*/@]{0,255})=([ -+\--<>-~]{0,255}[!-+\--<>-~])$/;
const maxMembers = 32;
/** Characters that are passed on at least, as the standard asks for; more might not fit into an instance's limit. */
const maxState = 512;
const longMember = 128;

/** Without spaces and tabs around it. */
function trimBlanks(text: string): string {
  const isBlank = (at: number): boolean => text[at] === ' ' || text[at] === '\t';
  let from = 0;
  let to = text.length;
  while (isBlank(from)) from += 1;
  while (to > from && isBlank(to - 1)) to -= 1;
  return text.slice(from, to);
}

/** Several headers are joined with commas. @returns the state as it is passed on; empty if any part is invalid */
function readState(text: string): string {
  const members = text
    .split(',')
    .map(trimBlanks)
    .filter((part) => part !== '');
  if (members.length > maxMembers) return '';
  const byKey = new Map<string, string>();
  for (const part of members) {
    const key = member.exec(part)?.[1];
    if (key === undefined) return '';
    if (!byKey.has(key)) byKey.set(key, part); // the first is the newest
  }
  return shorten([...byKey.values()]);
}

/** Whole members are left out: first long ones, then from the end. */
function shorten(members: readonly string[]): string {
  const isShort = (some: readonly string[]): boolean => some.join(',').length <= maxState;
  const kept = isShort(members) ? [...members] : members.filter(({ length }) => length <= longMember);
  while (!isShort(kept)) kept.pop();
  return kept.join(',');
}

export function toTraceHeaders(context: TraceContext): TraceHeaders {
  const { trace_id, span_id, is_sampled, is_random, state } = context;
  const flags = (is_sampled ? 1 : 0) + (is_random ? 2 : 0);
  const traceparent = `00-${trace_id}-${span_id}-0${flags}`;
  return state === '' ? { traceparent } : { traceparent, tracestate: state };
}

/** A position in one text, for a row: both headers, with a space between. */
export function formatPlace(context: TraceContext): string {
  const { traceparent, tracestate } = toTraceHeaders(context);
  return tracestate === undefined ? traceparent : `${traceparent} ${tracestate}`;
}

/** @param text of `formatPlace`; null: no position */
export function readPlace(text: string | null): TraceContext | null {
  const [, traceparent, tracestate] = /^(\S*) ?(.*)$/.exec(text ?? '') ?? [];
  return readTrace(traceparent, tracestate);
}

/** @param id a prefix and a UUID */
function hexOf(id: string): string {
  return id.slice(id.indexOf('_') + 1).replaceAll('-', '');
}

/** The id of a trace that begins with the object of this id. */
export function traceIdOf(id: string): string {
  return hexOf(id);
}

/** Creation time of the object with this id, Unix milliseconds: a UUIDv7 begins with it. */
export function madeAtMs(id: string): number {
  return Number.parseInt(hexOf(id).slice(0, 12), 16);
}
