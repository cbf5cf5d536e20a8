/**
 * How one `POST /exec` ended on the wire: the instance's answer, and how far the call had come. A JSON answer is
 * unusable if it has values that storage, expressions or the next request would change. This is checked once, when the
 * answer arrives.
 */

import type { CapabilitySpec, FailureReport } from '../contracts/capability.ts';
import type { ErrorCode } from '../contracts/errors.ts';
import { ExactNumber, isReservedText } from '../contracts/exact-json.ts';
import type { Failure, Json, JsonObject } from '../contracts/primitives.ts';
import { expressionLimits } from '../expression/language.ts';
import { describeFindings, isList, isPlainObject } from '../json/values.ts';
import { resolveLocalRef, withLocalReferences } from '../schema-types/references.ts';

/** An instance's answer with an error status. */
export interface AnsweredError {
  readonly status: number;
  readonly message: string;
  /** The header `x-error-code`; undefined when absent. */
  readonly errorCode?: string;
  /** The fields of the answer beside its message. Default: none. */
  readonly report?: FailureReport;
}

export type CallOutcome =
  /** 2xx with a JSON object. */
  | {
      readonly kind: 'answered';
      readonly body: JsonObject;
      /** What the instance reports to have loaded, beside a wrapped output. */
      readonly resident?: readonly string[] | undefined;
    }
  /** 4xx other than 429, as JSON: the capability refused or failed on this input. */
  | ({ readonly kind: 'rejected' } & AnsweredError)
  /** 5xx other than 503. */
  | ({ readonly kind: 'failed' } & AnsweredError)
  /** 429 or 503: the instance refuses work for now. */
  | {
      readonly kind: 'overloaded';
      readonly status: number;
      readonly retryAfterMs: number | null;
      /** Of the instance. Default: it gave none. */
      readonly message?: string;
      readonly report?: FailureReport;
    }
  /** No connection was made; nothing was sent. */
  | { readonly kind: 'not_sent'; readonly message: string }
  /** The connection broke after the request was sent. */
  | { readonly kind: 'lost'; readonly message: string }
  | { readonly kind: 'timeout'; readonly timeoutMs: number }
  /** HTML, a redirect, an empty or broken body: the answer of a proxy or of a failing instance. */
  | { readonly kind: 'invalid'; readonly message: string }
  /** A complete but malformed answer; a repeat of the request would get the same one. */
  | { readonly kind: 'malformed'; readonly message: string }
  | { readonly kind: 'too_large'; readonly limitBytes: number }
  /** The output does not match the capability's own schema. */
  | {
      readonly kind: 'output_invalid';
      readonly message: string;
      /** The first violations. */
      readonly errors?: readonly { readonly pointer: string; readonly message: string }[];
      readonly report?: FailureReport;
    }
  /** The run no longer needs the result. */
  | { readonly kind: 'cancelled' }
  /** Not sent, because unanswered earlier attempts have used up the retries. */
  | { readonly kind: 'withheld' }
  /** Stopped on its way, because its budgets have no more room for it. */
  | { readonly kind: 'exhausted'; readonly report?: FailureReport }
  /** Cancelled before it was sent. */
  | { readonly kind: 'unsent' }
  /** This process is shutting down; another one will retry. */
  | { readonly kind: 'abandoned' };

/** What the instance reports of a call that it did not complete; undefined: nothing. */
export function reportOf(outcome: CallOutcome): FailureReport | undefined {
  return 'report' in outcome ? outcome.report : undefined;
}

/** The kind of a complete error answer, by its status; 429 and 503 mean a refusal for now. */
export function kindOfStatus(status: number): 'overloaded' | 'failed' | 'rejected' {
  if (status === 429 || status === 503) return 'overloaded';
  return status >= 500 ? 'failed' : 'rejected';
}

/** @param faults violations of the instance's own output schema */
export function outputInvalid(
  faults: readonly { readonly pointer: string; readonly message: string }[],
): Extract<CallOutcome, { kind: 'output_invalid' }> {
  const findings = describeFindings(faults);
  const message = `the answer does not match the output schema: ${findings}`;
  return { kind: 'output_invalid', message, errors: firstFindings(faults) };
}

/** How far a call has come, as its instance reports it. */
export interface CallProgress {
  /** 0 to 1. */
  readonly progress: number;
  readonly message?: string;
}

const longestMessage = 200;

/** Whether a line of an answer reports progress: it has `progress` and no `ok`, which marks the final answer. */
export function isProgressLine(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.hasOwn(value, 'progress') && !Object.hasOwn(value, 'ok');
}

/** Ignores other fields. Null when the progress is not a number from 0 to 1; the line is harmless. */
export function readProgress({ progress, message }: Readonly<Record<string, unknown>>): CallProgress | null {
  if (typeof progress !== 'number' || !(progress >= 0 && progress <= 1)) return null;
  if (typeof message !== 'string') return { progress };
  const shown = message
    .slice(0, longestMessage)
    .replace(/\p{Cc}/gu, ' ')
    .replace(/\p{Cs}/gu, '\uFFFD');
  return { progress, message: shown };
}

/** Whether a line of an answer is a part of the result: it has `delta` and no `ok`, which marks the final answer. */
export function isDeltaLine(value: unknown): value is { readonly delta: Json } {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.hasOwn(value, 'delta') && !Object.hasOwn(value, 'ok');
}

const deepest = expressionLimits.valueNesting;

/** One phrase with the value that was seen and the values that are allowed; null when the answer is sound. */
export function findAnswerFault(value: unknown, depth = 0): string | null {
  if (typeof value === 'number') {
    return Number.isFinite(value) ? null : 'holds a number that is too large; finite ones are allowed';
  }
  if (typeof value === 'string')
    return isReservedText(value)
      ? 'holds a text that begins with NUL and "number:", which is not allowed'
      : null;
  if (typeof value !== 'object' || value === null || value instanceof ExactNumber) return null;
  if (depth >= deepest) return `nests deeper than the ${deepest} levels that are allowed`;
  if (Object.hasOwn(value, '__proto__')) return 'holds the key __proto__, which is not allowed';
  for (const inner of Object.values(value)) {
    const fault = findAnswerFault(inner, depth + 1);
    if (fault !== null) return fault;
  }
  return null;
}

const mostFindings = 10;
const longestFinding = { pointer: 200, message: 300 };

/** The findings that a failure keeps. */
function firstFindings(
  faults: readonly { readonly pointer: string; readonly message: string }[],
): readonly { readonly pointer: string; readonly message: string }[] {
  return faults.slice(0, mostFindings).map(({ pointer, message }) => ({
    pointer: shortenText(pointer, longestFinding.pointer),
    message: shortenText(message, longestFinding.message),
  }));
}

/** No character is cut in two. */
export function shortenText(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

// Failures that an instance answered by HTTP. The message begins with the status, for people; code reads `status`,
// and the instance's `x-error-code` from `details`.

interface HttpFailure extends Failure {
  readonly code: ErrorCode;
}

function prefixOf(status: number): string {
  return `HTTP ${status}: `;
}

export function toHttpFailure(
  code: ErrorCode,
  { status, message, errorCode, report }: AnsweredError,
): HttpFailure {
  const details = {
    ...(errorCode === undefined ? {} : { error_code: errorCode }),
    ...detailsOf(report),
  };
  return {
    code,
    message: `${prefixOf(status)}${message}`,
    status,
    ...(Object.keys(details).length === 0 ? {} : { details }),
  };
}

/** The refusal of the provider behind an instance, as a detail of a failure. */
export function detailsOf(report: FailureReport | undefined): { readonly provider?: JsonObject } {
  return report?.provider === undefined ? {} : { provider: report.provider as JsonObject };
}

/** The instance's own message in a failure of `toHttpFailure`; the message of any other failure. */
export function wordsOf({ status, message }: Failure): string {
  return status === undefined ? message : message.slice(prefixOf(status).length);
}

/** The error code that the instance gave; undefined when it gave none. */
export function errorCodeOf({ status, details }: Failure): string | undefined {
  const code = status !== undefined && isPlainObject(details) ? details.error_code : undefined;
  return typeof code === 'string' ? code : undefined;
}

type UnwrappedAnswer =
  | { readonly ok: true; readonly output: Json; readonly resident?: Json | undefined }
  /** The instance reports success and nothing else. */
  | { readonly ok: true; readonly output?: never }
  /** The instance reports failure, although the status does not. */
  | { readonly ok: false; readonly error: string; readonly body: JsonObject };

/**
 * Reads both forms of an answer: `{ok, output}` is unwrapped unless the spec's own output schema declares a top-level
 * `ok`; any other body is the output itself.
 */
export function unwrapAnswer(spec: Pick<CapabilitySpec, 'output'>, body: JsonObject): UnwrappedAnswer {
  const isWrapper = Object.hasOwn(body, 'ok') && !declaresOk(spec.output);
  if (isWrapper && body.ok === false && typeof body.error === 'string') {
    return { ok: false, error: body.error, body };
  }
  if (isWrapper && body.ok === true && Object.keys(body).length === 1) return { ok: true };
  const isWrapped = isWrapper && body.ok === true && Object.hasOwn(body, 'output');
  if (!isWrapped) return { ok: true, output: body };
  return { ok: true, output: body.output as Json, resident: body.resident };
}

function declaresOk(output: JsonObject): boolean {
  const root = withLocalReferences(output);
  const seen = new Set<JsonObject>();
  const visit = (schema: Json | undefined): boolean => {
    if (!isPlainObject(schema) || seen.has(schema)) return false;
    seen.add(schema);
    const { properties, required, $ref } = schema;
    if (isPlainObject(properties) && Object.hasOwn(properties, 'ok')) return true;
    if (Array.isArray(required) && required.includes('ok')) return true;
    if (typeof $ref === 'string' && visit(resolveLocalRef(root, $ref))) return true;
    const branches = [schema.allOf, schema.anyOf, schema.oneOf];
    return branches.some((list) => list !== undefined && isList(list) && list.some(visit));
  };
  return visit(root);
}
