/**
 * The one error class of Capstan, its translator for unknown throwables, and the test whether a fault means that a part
 * is unavailable for now, so that a retry may succeed.
 *
 * Services and clients throw AppError. The API turns it into problem+json, an activity into an `ApplicationFailure`
 * whose type is the code.
 */
import { type ErrorCode, errorTable } from '../contracts/errors.ts';
import type { Json } from '../contracts/primitives.ts';
import type { ProblemItem } from '../contracts/problem.ts';

export interface AppErrorOptions {
  readonly cause?: unknown;
  /** One entry per finding, for responses that list them. */
  readonly errors?: readonly ProblemItem[];
  /** Machine-readable facts shown beside the message. */
  readonly details?: Json;
  /** Seconds after which the same request may succeed. */
  readonly retryAfterS?: number;
}

export class AppError extends Error {
  override readonly name = 'AppError';
  readonly code: ErrorCode;
  readonly errors: readonly ProblemItem[] | undefined;
  readonly details: Json | undefined;
  readonly retryAfterS: number | undefined;

  /** @param message the value seen and the values allowed, for a person */
  constructor(code: ErrorCode, message: string, options: AppErrorOptions = {}) {
    super(message, { cause: options.cause });
    this.code = code;
    this.errors = options.errors;
    this.details = options.details;
    this.retryAfterS = options.retryAfterS;
  }

  get status(): number {
    return errorTable[this.code].status;
  }

  get retryable(): boolean {
    return errorTable[this.code].retryable;
  }
}

/** Makes one `request_invalid` of all faults of a request; the message is that of the first. */
export function refuseRequest(errors: readonly ProblemItem[]): AppError {
  const { message = '', suggestion } = errors[0] ?? {};
  const shown = suggestion === undefined ? message : `${message}; ${suggestion}`;
  return new AppError('request_invalid', shown, { errors });
}

/** Makes a `request_invalid` about one field of a request. */
export function refuseField(pointer: string, message: string, code = 'invalid_value'): AppError {
  return refuseRequest([{ pointer, code, message }]);
}

/** An error code of our own, raised by db/sql/triggers/refuse-erased.sql. */
const projectErased = 'CAP01';
/** A Postgres error code: a foreign key finds no row. */
const noSuchRow = '23503';

/**
 * An equal definition was deleted with its last reference, after we found it stored and before we wrote our reference.
 */
function hasLostDefinition(fault: { readonly code: unknown; readonly constraint?: unknown }): boolean {
  return fault.code === noSuchRow && String(fault.constraint).endsWith('_digest_fkey');
}

/** Unknown errors become `internal` here and nowhere else; the cause is kept for the log, never shown. */
export function toAppError(thrown: unknown): AppError {
  if (thrown instanceof AppError) return thrown;
  if (thrown instanceof Error && 'code' in thrown) {
    const options = { cause: thrown };
    if (thrown.code === projectErased)
      return new AppError('state_conflict', 'the project is being erased and accepts no new work', options);
    if (hasLostDefinition(thrown))
      return new AppError('unavailable', 'the definition was deleted during the request; retry', {
        ...options,
        retryAfterS: 0,
      });
  }
  return new AppError('internal', 'unexpected fault', { cause: thrown });
}

/** Node's connection errors, and Postgres' classes 08, 53, 57 as far as they mean "not now". */
const unavailableCodes =
  /^(ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|08...|53[0-3]00|57P0[1-5]|57014|55P03)$/;

/**
 * The one exception to "never match on message text": pg gives these errors neither a code nor a class. Knex puts the
 * statement and a dash before them.
 */
const unavailableMessage =
  /(?:^| - )(?:Connection (?:terminated|ended) unexpectedly|timeout expired|Query read timeout)$/;

/** Whether a fault means that a part is unavailable for now, so that a retry may succeed. */
export function isUnavailable(thrown: unknown): boolean {
  return (
    thrown instanceof Error &&
    (thrown.name === 'KnexTimeoutError' ||
      unavailableMessage.test(thrown.message) ||
      ('code' in thrown && unavailableCodes.test(String(thrown.code))))
  );
}
