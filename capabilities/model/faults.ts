/**
 * The possible faults of a call of a model, by the code of the error: it shows who can help, and its status makes the
 * router do the right thing. Another instance: model_config (its operator has to act), model_unavailable. Later:
 * model_overloaded. The end, with this input: model_rejected, model_answer_invalid (worth asking once more).
 */

import { CallFailure, type CallFailureStatus } from '@capstan/capability';
import { APICallError } from 'ai';

const statuses = {
  model_config: 502,
  model_overloaded: 503,
  model_unavailable: 502,
  model_rejected: 422,
  model_answer_invalid: 422,
} as const satisfies Record<string, CallFailureStatus>;
type ModelFault = keyof typeof statuses;

const longestMessage = 1_000;

/** At most `length` characters, and no half of a surrogate pair. */
export function shorten(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

export function modelFailure(fault: ModelFault, message: string, retryAfterS?: number): CallFailure {
  return new CallFailure(statuses[fault], `${fault}: ${message}`, {
    code: fault,
    ...(retryAfterS === undefined ? {} : { retryAfterS }),
  });
}

/** 402: no money left at the provider. */
const configurationStatuses: readonly number[] = [401, 402, 403, 404];
const overloadedStatuses: readonly number[] = [429, 503, 529];
const repeatableStatuses: readonly number[] = [408, 409];

function faultOf(status: number, code: unknown): ModelFault {
  if (configurationStatuses.includes(status) || code === 'insufficient_quota') return 'model_config';
  if (overloadedStatuses.includes(status)) return 'model_overloaded';
  const isTheirs = status >= 500 || repeatableStatuses.includes(status);
  return isTheirs ? 'model_unavailable' : 'model_rejected';
}

/** Seconds or an HTTP date. */
function readRetryAfter(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  const seconds = /^\s*\d+(\.\d+)?\s*$/.test(header)
    ? Number(header)
    : (Date.parse(header) - Date.now()) / 1_000;
  return seconds >= 0 ? seconds : undefined;
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

/** Providers put all kinds of things into a stream's error; an Error itself is never printed, it holds the request. */
function describe(error: unknown): string {
  const message = field(error, 'message');
  if (typeof message === 'string' && message !== '') return message;
  if (error instanceof Error) return String(field(error, 'code') ?? 'no message');
  return typeof error === 'string' ? error : (JSON.stringify(error) ?? 'no message');
}

const excerptLength = 200;

/** What came where an answer was expected. @param text without secrets */
export function describeAnswer(status: number, type: string | null | undefined, text: string): string {
  const excerpt = text.trim() === '' ? 'nothing' : JSON.stringify(shorten(text.trim(), excerptLength));
  return `status ${status}, ${type ?? 'no content type'}: ${excerpt}`;
}

/** @param hide takes secrets out of a text */
export function explainProviderError(error: unknown, hide: (text: string) => string): CallFailure {
  const show = (text: string): string => shorten(hide(text), longestMessage);
  if (!APICallError.isInstance(error) || error.statusCode === undefined) {
    return modelFailure('model_unavailable', show(describe(error)));
  }
  const { statusCode, data, responseHeaders, responseBody = '' } = error;
  const type = responseHeaders?.['content-type'];
  // Below 400 it is the way to the answer, or the answer itself, that broke.
  if (statusCode < 400) {
    const got = describeAnswer(statusCode, type, hide(responseBody));
    return modelFailure('model_unavailable', `${show(describe(error))}; got ${got}`);
  }
  const fault = faultOf(statusCode, field(field(data, 'error'), 'code'));
  const retryAfterS =
    fault === 'model_overloaded' ? readRetryAfter(responseHeaders?.['retry-after']) : undefined;
  // Without data the body is not what this provider's errors look like, but explains more than the status.
  const message =
    data === undefined
      ? `the provider answered ${describeAnswer(statusCode, type, hide(responseBody))}`
      : `the provider answered ${statusCode}: ${show(describe(error))}`;
  return modelFailure(fault, message, retryAfterS);
}
