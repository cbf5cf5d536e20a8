/**
 * The failures of a provider behind a wrapped capability. The status of its answer, or the error inside its answer, decides
 * who can help:
 *
 * | answer | the call fails with | then |
 * |---|---|---|
 * | 401, 402, 403, 404, 405, a redirect, a used-up quota | 502 `provider_config` | another instance; its operator has to act |
 * | 429, 503, 529 | 503 `provider_busy` | later |
 * | 408, 409, 425, other 5xx, no answer | 502 `provider_unavailable` | another instance |
 * | other 4xx | 422 `provider_refused` | the input is at fault |
 * | an answer of a model that does not match the schema | 422 `model_answer_invalid` | ask once more with the error |
 *
 * A provider that refuses by its status has made nothing, so the call costs 0, unless the answer counts tokens. After a
 * timeout on the way to the provider, the cost is unknown.
 */
import { CallFailure, type CallFailureStatus } from '@capstan/capability/call-failure';
import type { FailureReport, ProviderError } from '@capstan/core/contracts/capability';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { isList, isPlainObject } from '@capstan/core/json/values';

const statuses = {
  provider_config: 502,
  provider_busy: 503,
  provider_unavailable: 502,
  provider_refused: 422,
  model_answer_invalid: 422,
} as const satisfies Record<string, CallFailureStatus>;

export type RemoteFault = keyof typeof statuses;

/** An error in the words of the provider. */
export type StatedError = ProviderError & { readonly message: string };

interface FailureDetails extends FailureReport {
  readonly retryAfterS?: number | undefined;
}

const longestMessage = 1_000;

/** At most `length` characters, and no half of a surrogate pair. */
export function shorten(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

export function providerFailure(
  fault: RemoteFault,
  message: string,
  { retryAfterS, ...report }: FailureDetails = {},
): CallFailure {
  return new CallFailure(statuses[fault], shorten(message, longestMessage), {
    code: fault,
    retryAfterS,
    report,
  });
}

function faultOfStatus(status: number): RemoteFault {
  if (status < 400 || [401, 402, 403, 404, 405].includes(status)) return 'provider_config';
  if ([429, 503, 529].includes(status)) return 'provider_busy';
  return status >= 500 || [408, 409, 425].includes(status) ? 'provider_unavailable' : 'provider_refused';
}

/** The status of an error inside an answer that began as a success, by the name that providers give it as type or code. */
const statusByName: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  context_length_exceeded: 400,
  content_filter: 400,
  authentication_error: 401,
  invalid_api_key: 401,
  billing_error: 402,
  permission_error: 403,
  not_found_error: 404,
  model_not_found: 404,
  rate_limit_error: 429,
  rate_limit_exceeded: 429,
  resource_exhausted: 429,
  insufficient_quota: 429,
  overloaded_error: 529,
};
const unnamedStatus = 502;

/** An error that has no words. */
export const unnamedError: StatedError = { status: unnamedStatus, message: 'an error' };

function statusOf(code: string, type: string): number {
  const said = Number(code);
  if (said >= 400 && said < 600) return said;
  const name = [code.toLowerCase(), type.toLowerCase()].find((one) => Object.hasOwn(statusByName, one));
  return (name === undefined ? undefined : statusByName[name]) ?? unnamedStatus;
}

/** A used-up quota is answered 429, but does not come back by itself. */
function faultOf({ status, code, type }: StatedError): RemoteFault {
  return [code, type].includes('insufficient_quota') ? 'provider_config' : faultOfStatus(status);
}

function textOf(value: Json | undefined): string | undefined {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}

/**
 * An error as providers write it: `{error: {message, type, code, param}}`, `{error: "…"}`, `[{error}]`, or bare. Null:
 * the value is none.
 * @param status of the answer; default: that of the error itself
 */
export function readProviderError(value: Json, status?: number): StatedError | null {
  const [first = null] = isList(value) ? value : [value];
  const outer = isPlainObject(first) ? first : {};
  const error = outer.error ?? (textOf(outer.message) === undefined ? null : outer);
  if (error === null) return null;
  const fields = isPlainObject(error) ? error : {};
  const message = textOf(error) ?? textOf(fields.message) ?? JSON.stringify(error);
  const details = isPlainObject(fields.details) ? fields.details : {};
  const [type = '', code = ''] = [
    textOf(fields.type ?? fields.status),
    textOf(fields.code ?? details.error_code), // Anthropic's code of a refused thread
  ];
  // A number is a status, and no code that a program looks for.
  const name = /^\d+$/.test(code) ? '' : code;
  const named = Object.entries({ type, code: name, param: textOf(fields.param) ?? '' });
  const said = Object.fromEntries(named.filter(([, text]) => text !== ''));
  const more = Object.entries(fields).filter(([name, part]) => part !== null && !ownNames.has(name));
  const others = more.length === 0 ? {} : { more: Object.fromEntries(more) as JsonObject };
  return { status: status ?? statusOf(code, type), message, ...said, ...others };
}

const ownNames: ReadonlySet<string> = new Set(['message', 'type', 'code', 'param', 'status']);

function parse(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return null;
  }
}

/** Takes secrets out of each text. */
function hideIn(error: StatedError, hide: (text: string) => string): StatedError {
  const shown = Object.entries(error).map(([name, value]) => {
    if (typeof value === 'object') return [name, parse(hide(JSON.stringify(value)))];
    return [name, typeof value === 'string' ? shorten(hide(value), longestMessage) : value];
  });
  return Object.fromEntries(shown) as StatedError;
}

/** Seconds, milliseconds or an HTTP date. */
function readRetryAfter(header: (name: string) => string | null): number | undefined {
  const ms = header('retry-after-ms');
  if (ms !== null && /^\s*\d+(\.\d+)?\s*$/.test(ms)) return Number(ms) / 1_000;
  const after = header('retry-after');
  if (after === null) return undefined;
  const seconds = /^\s*\d+(\.\d+)?\s*$/.test(after)
    ? Number(after)
    : (Date.parse(after) - Date.now()) / 1_000;
  return seconds >= 0 ? seconds : undefined;
}

interface RefusedExchange {
  readonly place: string;
  readonly status: number;
  readonly text: string;
  readonly header: (name: string) => string | null;
  readonly hide: (text: string) => string;
  readonly usageOf?: ((answer: Json) => FailureReport['usage'] | null) | undefined;
}

/** A proxy or the provider gave up waiting; the model may have answered. */
const lateStatuses: readonly number[] = [408, 504, 524];

function costOfRefusal(status: number, usage: FailureReport['usage'] | null = null): FailureReport {
  if (usage !== null) return { usage };
  return lateStatuses.includes(status) ? {} : { cost_usd: 0 };
}

/** What a refused request shows of the answer. */
const shownText = 600;

/** An answer that is no success, as the failure of the call. */
export function failureOfAnswer(refused: RefusedExchange): CallFailure {
  const { place, status, text, header, hide, usageOf } = refused;
  const body = parse(text);
  const said = readProviderError(body, status) ?? { status, message: text };
  const fault = faultOf(said);
  const location = status >= 300 && status < 400 ? header('location') : null;
  const seen = location === null ? hide(text).slice(0, shownText).trim() : `it leads to ${location}`;
  return providerFailure(fault, hide(`${place} was answered ${status}: ${seen}`), {
    retryAfterS: fault === 'provider_busy' ? readRetryAfter(header) : undefined,
    // A redirect is no word of the provider.
    ...(status < 400 ? {} : { provider: hideIn(said, hide) }),
    ...costOfRefusal(status, usageOf?.(body)),
  });
}

/** Whether the provider has refused to begin, so that nothing is used; any other failure may come after some work. */
export function isRefusal(error: StatedError): boolean {
  return faultOf(error) !== 'provider_unavailable';
}

/** An error inside an answer that began as a success. @param used by the answer, if it is known */
export function failureInAnswer(
  error: StatedError,
  hide: (text: string) => string,
  used: Pick<FailureReport, 'usage' | 'cost_usd'> = {},
): CallFailure {
  const provider = hideIn(error, hide);
  return providerFailure(faultOf(error), `the provider reports ${provider.message}`, { provider, ...used });
}

const unconnected = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
];

/** Whether nothing was sent. */
export function isUnconnected(error: unknown): boolean {
  const code: unknown =
    Reflect.get(Object(error), 'code') ?? Reflect.get(Object(Reflect.get(Object(error), 'cause')), 'code');
  return unconnected.includes(String(code));
}

/** The reason why no answer came, as Node and undici nest it. */
export function causeOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (!(cause instanceof Error)) return String(cause);
  const code: unknown = Reflect.get(cause, 'code');
  return cause.message || (typeof code === 'string' ? code : cause.name);
}
