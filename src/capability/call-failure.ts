/**
 * What `exec` throws when the caller should do something else than give up on its input, as it does for any other
 * error (422). The statuses are those that the router tells apart: 429 and 503 mean "not now", which is not counted;
 * 502 and 504 are tried on another instance. Known by its name, as the author's copy of this package may be another.
 */
export type CallFailureStatus = 422 | 429 | 502 | 503 | 504;

export class CallFailure extends Error {
  override readonly name = 'CallFailure';
  readonly status: CallFailureStatus;
  /** When to ask again (`Retry-After`), for 429 and 503. */
  readonly retryAfterS: number | undefined;
  /** What kind of error it is, for callers that know the capability (`x-error-code`): a-z, 0-9 and _, at most 64. */
  readonly code: string | undefined;

  constructor(
    status: CallFailureStatus,
    message: string,
    options: { readonly retryAfterS?: number; readonly code?: string; readonly cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.status = status;
    this.retryAfterS = options.retryAfterS;
    this.code = options.code;
  }
}

export function isCallFailure(thrown: unknown): thrown is CallFailure {
  return (
    thrown instanceof Error &&
    thrown.name === 'CallFailure' &&
    typeof Reflect.get(thrown, 'status') === 'number'
  );
}
