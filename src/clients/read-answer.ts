/**
 * Reads an instance's answer to `/exec`: bounded, JSON only, redirects are failures.
 *
 * An answer may come line by line (`application/x-ndjson`): what response-lines.ts leaves of it is the ordinary answer. Its
 * head has been sent by then, so a failure carries its status in the answer itself.
 */
import { isUtf8 } from 'node:buffer';
import { type CallOutcome, findAnswerFault, kindOfStatus } from '@capstan/core/call/outcome';
import { FailureReport } from '@capstan/core/contracts/capability';
import { parseExactJson, writeExactJson } from '@capstan/core/contracts/exact-json';
import { mostValues } from '@capstan/core/contracts/limits';
import type { Json } from '@capstan/core/contracts/primitives';
import { describeValue } from '@capstan/core/expression/evaluation';
import { findJsonFault, type JsonLimits } from '@capstan/core/json/scan';
import { isPlainObject } from '@capstan/core/json/values';
import { largeTextBytes } from '@capstan/core/pacing';
import type { Redactor } from '@capstan/core/secrets/redaction';
import type { InstanceAnswer, InstanceAnswerHead } from './send-request.ts';

const errorTextLimit = 65_536;

/** The parser counts the depth of an answer, and the limit of bytes bounds its values. */
const answerLimits: JsonLimits = {
  depth: Number.POSITIVE_INFINITY,
  keys: Number.POSITIVE_INFINITY,
  values: mostValues,
  stringBytes: Number.POSITIVE_INFINITY,
  anyText: true,
};

function isJson({ headers }: InstanceAnswerHead): boolean {
  return /^application\/([\w.+-]+\+)?json\b/i.test(String(headers['content-type'] ?? ''));
}

/** How many bytes of an answer are read: none where the status or type is enough. */
export function answerLimit(head: InstanceAnswerHead, limitBytes: number): number {
  const { status } = head;
  if (status === 204 || status === 205) return 0;
  if (status < 300) return isJson(head) ? limitBytes : 0;
  const isMute = status < 400 || (kindOfStatus(status) === 'overloaded' && !isJson(head));
  return isMute ? 0 : errorTextLimit;
}

export function readAnswer(answer: InstanceAnswer, limitBytes: number): CallOutcome {
  const { status, headers, body } = answer;
  if (status === 204 || status === 205) {
    return { kind: 'malformed', message: `HTTP ${status}, which has no body; a JSON object is needed` };
  }
  const type = `HTTP ${status} with content type "${headers['content-type'] ?? ''}"`;
  if (status < 300) {
    if (!isJson(answer)) return { kind: 'invalid', message: `${type}, not JSON` };
    return body === null ? { kind: 'too_large', limitBytes } : parseObject(body, status);
  }
  if (status < 400) {
    return { kind: 'invalid', message: `HTTP ${status}, a redirect; an instance answers itself` };
  }
  const kind = kindOfStatus(status);
  const { message, ...told } = readFailure(body?.toString('utf8') ?? '');
  if (kind === 'overloaded') {
    const retryAfterMs = retryAfter(headers['retry-after']);
    return isJson(answer) ? { kind, status, retryAfterMs, message, ...told } : { kind, status, retryAfterMs };
  }
  const errorCode = readErrorCode(headers['x-error-code']);
  const error = { status, message, ...(errorCode === undefined ? {} : { errorCode }), ...told };
  return kind === 'failed' || isJson(answer)
    ? { kind, ...error }
    : { kind: 'invalid', message: `${type}: ${message}` };
}

function parseObject(body: Buffer, status: number): CallOutcome {
  if (body.length === 0) return { kind: 'invalid', message: `HTTP ${status} with an empty body` };
  if (!isUtf8(body))
    return { kind: 'malformed', message: 'the answer is not UTF-8, which JSON is written in' };
  const fault = body.length < largeTextBytes ? null : findJsonFault(body, answerLimits);
  if (fault !== null) return { kind: 'malformed', message: `the answer ${fault.message}` };
  try {
    return readObject(parseExactJson(body.toString('utf8')));
  } catch (error) {
    return { kind: 'invalid', message: `the answer is not JSON: ${(error as Error).message}` };
  }
}

function readObject(value: unknown): CallOutcome {
  if (!isPlainObject(value)) {
    return { kind: 'malformed', message: `the answer is ${describeValue(value)}, not an object` };
  }
  const fault = findAnswerFault(value);
  return fault === null
    ? { kind: 'answered', body: value }
    : { kind: 'malformed', message: `the answer ${fault}` };
}

/** Reads the fields of an error answer beside its message; `report` is absent if there are none. */
export function readReport(value: object): { readonly report?: FailureReport } {
  const { success, data } = FailureReport.safeParse(value);
  const told = Object.entries(success ? data : {}).filter(([, field]) => field !== undefined);
  return told.length === 0 ? {} : { report: Object.fromEntries(told) };
}

/** The specification's `error` string where there is one, else the beginning of the text. */
function readFailure(text: string): { readonly message: string; readonly report?: FailureReport } {
  try {
    const value = JSON.parse(text) as { error?: unknown };
    if (typeof value?.error === 'string')
      return { message: value.error.slice(0, 8_192), ...readReport(value) };
  } catch {
    // Not JSON: the raw text is better than nothing.
  }
  return { message: text.replaceAll('\u0000', '').slice(0, 500) || 'no message' };
}

/** Reads the instance's own code of an error; anything but a short name is none. */
function readErrorCode(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' && /^[a-z][a-z0-9_]{0,63}$/.test(value) ? value : undefined;
}

/** Seconds or an HTTP date. */
function retryAfter(value: string | string[] | undefined): number | null {
  if (typeof value !== 'string') return null;
  const seconds = Number(value);
  const ms = Number.isFinite(seconds) ? seconds * 1_000 : Date.parse(value) - Date.now();
  return Number.isFinite(ms) && ms >= 0 ? ms : null;
}

/** Takes secrets out of an answer, before anything of it is cut off or quoted. */
export async function redactAnswer(answer: InstanceAnswer, redactor: Redactor): Promise<InstanceAnswer> {
  const { headers, body } = answer;
  const shown = Object.entries(headers).map(([name, value]) => [
    name,
    typeof value === 'string' ? redactor.text(value) : value?.map(redactor.text),
  ]);
  return {
    ...answer,
    headers: Object.fromEntries(shown),
    body: body === null ? null : await redactBody(body, redactor),
  };
}

/** Strings are searched as they are meant, not as JSON writes them; a text that is no JSON is searched unchanged. */
async function redactBody(body: Buffer, { longText, longJson }: Redactor): Promise<Buffer> {
  const shown = body.toString('utf8');
  let value: Json;
  try {
    value = parseExactJson(shown) as Json;
  } catch {
    const rest = await longText(shown);
    return rest === shown ? body : Buffer.from(rest);
  }
  const rest = await longJson(value);
  return rest === value ? body : Buffer.from(writeExactJson(rest));
}

/** Reads an answer that came later: it has the form of the last line of an answer that comes line by line. */
export async function readLaterAnswer(
  body: Buffer,
  { limitBytes, redactor }: { readonly limitBytes: number; readonly redactor?: Redactor | undefined },
): Promise<CallOutcome> {
  const answer = { status: 200, headers: {}, body };
  const shown = redactor === undefined ? answer : await redactAnswer(answer, redactor);
  return readAnswer(toOrdinaryAnswer(shown), limitBytes);
}

export function isProgressive({ status, headers }: InstanceAnswerHead): boolean {
  return status === 200 && /^application\/x-ndjson\b/i.test(String(headers['content-type'] ?? ''));
}

/** A longer answer is no refusal; its values are counted before it is parsed, which is not done here. */
const longestRefusal = largeTextBytes;

function readRefusal(body: Buffer | null): Readonly<Record<string, unknown>> {
  if (body === null || body.length >= longestRefusal) return {};
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return isPlainObject(value as never) ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** Takes the ordinary answer out of one with lines of progress. */
export function toOrdinaryAnswer({ status, headers, body }: InstanceAnswer): InstanceAnswer {
  const { ok, status: said, retry_after_s, error_code } = readRefusal(body);
  const isRefusal = ok === false && typeof said === 'number' && said >= 400 && said <= 599;
  return {
    status: isRefusal ? Math.trunc(said) : status,
    headers: {
      ...headers,
      'content-type': 'application/json',
      ...(isRefusal && typeof retry_after_s === 'number' ? { 'retry-after': String(retry_after_s) } : {}),
      ...(isRefusal && typeof error_code === 'string' ? { 'x-error-code': error_code } : {}),
    },
    body,
  };
}
