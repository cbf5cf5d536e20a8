/** Errors as programs that speak OpenAI's protocol expect them; `code` is Capstan's own (docs/reference/errors.md). */
import type { OpenAiError } from '../contracts/openai.ts';
import type { AppError } from '../errors/app-error.ts';

export const openAiPrefix = '/openai/';

function typeOf({ status, code }: AppError): string {
  if (status === 401) return 'authentication_error';
  if (status === 402 || code === 'budget_reserved') return 'insufficient_quota';
  if (status === 403) return 'permission_error';
  if (status === 429) return 'rate_limit_error';
  return status < 500 ? 'invalid_request_error' : 'api_error';
}

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

/** @returns `{error: {message, type, param, code}}` */
export function toOpenAiError(error: AppError): OpenAiError {
  const [first] = error.errors ?? [];
  const code = first?.code === 'model_not_found' ? first.code : error.code;
  const message = error.code === 'internal' ? 'unexpected fault' : describe(error);
  return {
    error: { message, type: typeOf(error), param: first === undefined ? null : toParam(first.pointer), code },
  };
}
