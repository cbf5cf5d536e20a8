import type { FailureReport } from '@capstan/core/contracts/capability';

/**
 * Status of the answer to a failed call. The router retries by status:
 *
 * - 422: the input is at fault; the call is not retried.
 * - 429, 503: busy; the call is retried elsewhere or later, and does not count against `retry.max`.
 * - 502, 504: the call is retried on another instance.
 */
export type CallFailureStatus = 422 | 429 | 502 | 503 | 504;

interface CallFailureOptions {
  readonly retryAfterS?: number | undefined;
  readonly code?: string | undefined;
  readonly cause?: unknown;
  /** What the failed call has cost and used, and the refusal of the provider behind the instance. */
  readonly report?: FailureReport | undefined;
}

/**
 * Throw this from `exec` to choose the status of the answer; any other error is a 422.
 *
 * It is recognised by its `name`, because the author's copy of this package may differ from the one that runs the
 * instance.
 */
export class CallFailure extends Error {
  override readonly name = 'CallFailure';
  readonly status: CallFailureStatus;
  /** For 429 and 503: seconds until the caller should retry (`Retry-After`). */
  readonly retryAfterS: number | undefined;
  /** An error code for callers that know the capability (`x-error-code`): a-z, 0-9 and _, at most 64 characters. */
  readonly code: string | undefined;
  /** Fields of the answer beside `ok` and `error`: `cost_usd`, `usage` and `provider`. */
  readonly report: FailureReport | undefined;

  constructor(status: CallFailureStatus, message: string, options: CallFailureOptions = {}) {
    super(message, { cause: options.cause });
    this.status = status;
    this.retryAfterS = options.retryAfterS;
    this.code = options.code;
    this.report = options.report;
  }
}

export function isCallFailure(thrown: unknown): thrown is CallFailure {
  return (
    thrown instanceof Error &&
    thrown.name === 'CallFailure' &&
    typeof Reflect.get(thrown, 'status') === 'number'
  );
}
