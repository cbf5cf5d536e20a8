/** Errors below the paths of a foreign protocol, in the form that its programs expect. */

import { AnthropicError } from '@capstan/core/contracts/anthropic';
import { OpenAiError } from '@capstan/core/contracts/openai';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { AppError } from '@capstan/core/errors/app-error';
import type { z } from 'zod';

/** `/input/messages/0/content` → `messages[0].content`; null: the whole request. */
function toParam(pointer: string): string | null {
  const names = pointer
    .replace(/^\/input(?=\/|$)/, '')
    .split('/')
    .slice(1);
  const path = names.map((name) => (/^\d+$/.test(name) ? `[${name}]` : `.${name}`)).join('');
  return path === '' ? null : path.replace(/^\./, '');
}

/** At most this many faults of a request are named in its message. */
const shownFaults = 5;

/** The message of a refused input lists its faults already. */
function describe({ code, message, errors = [] }: AppError): string {
  if (code !== 'request_invalid' || errors.length === 0) return message;
  const faults = errors.slice(0, shownFaults).map(({ pointer, message: fault }) => {
    const param = toParam(pointer);
    return param === null ? fault : `${param}: ${fault}`;
  });
  return faults.join('; ');
}

interface ToldError {
  readonly message: string;
  readonly param: string | null;
  /** Capstan's own (docs/reference/errors.md). */
  readonly code: string;
}

function tell(error: AppError): ToldError {
  const [first] = error.errors ?? [];
  return {
    message: error.code === 'internal' ? 'unexpected fault' : describe(error),
    param: first === undefined ? null : toParam(first.pointer),
    code: first?.code === 'model_not_found' ? first.code : error.code,
  };
}

function isAboutMoney({ status, code }: AppError): boolean {
  return status === 402 || code === 'budget_reserved';
}

function openAiTypeOf(error: AppError): string {
  const { status } = error;
  if (status === 401) return 'authentication_error';
  if (isAboutMoney(error)) return 'insufficient_quota';
  if (status === 403) return 'permission_error';
  if (status === 429) return 'rate_limit_error';
  return status < 500 ? 'invalid_request_error' : 'api_error';
}

/** @returns `{error: {message, type, param, code}}` */
export function toOpenAiError(error: AppError): OpenAiError {
  return { error: { ...tell(error), type: openAiTypeOf(error) } };
}

const anthropicTypes: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
};

function anthropicTypeOf(error: AppError): string {
  const { status, code } = error;
  if (isAboutMoney(error)) return 'billing_error';
  if (code === 'overloaded') return 'overloaded_error';
  return anthropicTypes[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
}

/** @returns `{type: 'error', error: {type, message, code, param}}` */
export function toAnthropicError(error: AppError): AnthropicError {
  return { type: 'error', error: { ...tell(error), type: anthropicTypeOf(error) } };
}

interface ErrorForm {
  readonly prefix: string;
  readonly schema: z.ZodType;
  readonly write: (error: AppError) => JsonObject;
}

const forms: readonly ErrorForm[] = [
  { prefix: '/openai/', schema: OpenAiError, write: toOpenAiError },
  { prefix: '/anthropic/', schema: AnthropicError, write: toAnthropicError },
];

/** Null: errors of the path are problem+json. */
export function findErrorForm(path: string): ErrorForm | null {
  return forms.find(({ prefix }) => path.startsWith(prefix)) ?? null;
}
