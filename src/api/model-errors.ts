/** Errors below the paths of a foreign protocol, in the form that its programs expect. */

import { AnthropicError } from '@capstan/core/contracts/anthropic';
import { ProviderError } from '@capstan/core/contracts/capability';
import { OpenAiError } from '@capstan/core/contracts/openai';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { AppError } from '@capstan/core/errors/app-error';
import { isPlainObject } from '@capstan/core/json/values';
import type { z } from 'zod';

/** `/input/messages/0/content` → `messages[0].content`; null: the whole request. */
function toParam(pointer: string, code: string): string | null {
  // Of the neutral form, whose fields have names; requests may have an `input` too.
  const prefix = code === 'request_invalid' ? /^\/input(?=\/\D)/ : /^\/input(?=\/\D|$)/;
  const names = pointer.replace(prefix, '').split('/').slice(1);
  const path = names.map((name) => (/^\d+$/.test(name) ? `[${name}]` : `.${name}`)).join('');
  return path === '' ? null : path.replace(/^\./, '');
}

/** At most this many faults of a request are named in its message. */
const shownFaults = 5;

/** The message of a refused input lists its faults already. */
function describe({ code, message, errors = [] }: AppError): string {
  if (code !== 'request_invalid' || errors.length === 0) return message;
  const faults = errors.slice(0, shownFaults).map(({ pointer, message: fault }) => {
    const param = toParam(pointer, code);
    return param === null ? fault : `${param}: ${fault}`;
  });
  return faults.join('; ');
}

/** The refusal of the provider behind the instance that was called; null: it made none. */
function providerOf({ details }: AppError): ProviderError | null {
  const { provider = null } = isPlainObject(details) ? details : {};
  const { success, data } = ProviderError.safeParse(provider);
  return success ? data : null;
}

/** Refusals that programs expect with the status that the provider gave them. */
const passedStatuses: ReadonlySet<number> = new Set([413, 429]);

/** Codes of findings that programs look for, with the status that they expect. */
const knownFindings: Readonly<Record<string, number>> = {
  model_not_found: 404,
  previous_response_not_found: 400,
};

/** The first finding of an error, if programs know it by its code. */
function knownFindingOf({
  errors = [],
}: AppError): { readonly code: string; readonly status: number } | null {
  const { code = '' } = errors[0] ?? {};
  const status = Object.hasOwn(knownFindings, code) ? knownFindings[code] : undefined;
  return status === undefined ? null : { code, status };
}

/**
 * The status of an error for programs of a protocol: the one of the provider if it refused the request, or refuses
 * requests for now. A provider without access is a fault of the operator, so the client gets no 401 or 403.
 * @param overloaded the status by which the protocol answers that the provider is overloaded
 */
function statusFor(error: AppError, overloaded: number): number {
  const { status } = providerOf(error) ?? { status: 0 };
  if (error.code === 'overloaded')
    return passedStatuses.has(status) ? status : status === 529 ? overloaded : error.status;
  if (error.code !== 'input_rejected' || status === 0) return knownFindingOf(error)?.status ?? error.status;
  return passedStatuses.has(status) ? status : 400;
}

/** Other fields of the provider's error, such as `details`, if it is about the request or the load. */
function moreOf(error: AppError): JsonObject {
  const isPassed = error.code === 'input_rejected' || error.code === 'overloaded';
  return (isPassed ? providerOf(error)?.more : undefined) ?? {};
}

interface ToldError {
  readonly message: string;
  readonly param: string | null;
  /** Of the provider, else Capstan's own (docs/reference/errors.md). */
  readonly code: string;
}

function tell(error: AppError): ToldError {
  const [first] = error.errors ?? [];
  const provider = providerOf(error);
  const message = error.code === 'internal' ? 'unexpected fault' : describe(error);
  return {
    message: provider?.message || message,
    param: provider?.param ?? (first === undefined ? null : toParam(first.pointer, error.code)),
    code: provider?.code || (knownFindingOf(error)?.code ?? error.code),
  };
}

function isAboutMoney({ status, code }: AppError): boolean {
  return status === 402 || code === 'budget_reserved';
}

function openAiStatusOf(error: AppError): number {
  return statusFor(error, 503);
}

function openAiTypeOf(error: AppError): string {
  const status = openAiStatusOf(error);
  if (status === 401) return 'authentication_error';
  if (isAboutMoney(error)) return 'insufficient_quota';
  if (status === 403) return 'permission_error';
  if (status === 429) return 'rate_limit_error';
  return status < 500 ? 'invalid_request_error' : 'api_error';
}

/** @returns `{error: {message, type, param, code}}` */
export function toOpenAiError(error: AppError): OpenAiError {
  return { error: { ...moreOf(error), ...tell(error), type: openAiTypeOf(error) } };
}

const anthropicTypes: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
};

function anthropicStatusOf(error: AppError): number {
  return statusFor(error, 529);
}

function anthropicTypeOf(error: AppError): string {
  const status = anthropicStatusOf(error);
  if (isAboutMoney(error)) return 'billing_error';
  if (error.code === 'overloaded' && status !== 429) return 'overloaded_error';
  return anthropicTypes[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
}

/** By these words Anthropic's libraries know that they have to send all messages, once or from now on. */
function detailsOf({ param, code }: ToldError): Pick<AnthropicError['error'], 'details'> {
  if (param === 'thread' || code === 'thread_unsupported_request')
    return { details: { error_code: 'thread_unsupported_request', unsupported: ['thread'] } };
  return code.startsWith('thread_') ? { details: { error_code: code } } : {};
}

/** @returns `{type: 'error', error: {type, message, code, param}}`, and `details` if it refuses a `thread` */
export function toAnthropicError(error: AppError): AnthropicError {
  const told = tell(error);
  return {
    type: 'error',
    error: { ...detailsOf(told), ...moreOf(error), ...told, type: anthropicTypeOf(error) },
  };
}

interface ErrorForm {
  readonly prefix: string;
  readonly schema: z.ZodType;
  readonly write: (error: AppError) => JsonObject;
  readonly statusOf: (error: AppError) => number;
}

const forms: readonly ErrorForm[] = [
  { prefix: '/openai/', schema: OpenAiError, write: toOpenAiError, statusOf: openAiStatusOf },
  { prefix: '/anthropic/', schema: AnthropicError, write: toAnthropicError, statusOf: anthropicStatusOf },
];

/** Null: errors of the path are problem+json. */
export function findErrorForm(path: string): ErrorForm | null {
  return forms.find(({ prefix }) => path.startsWith(prefix)) ?? null;
}
