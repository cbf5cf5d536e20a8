/**
 * The one error class of Capstan and its translator for unknown throwables.
 *
 * @throws nothing by itself; services and clients throw it. The API turns it into problem+json, an
 * activity into an `ApplicationFailure` whose type is the code.
 */
import { type ErrorCode, errorTable } from '../contracts/errors.ts';
import type { Json } from '../contracts/primitives.ts';
import type { ProblemItem } from '../contracts/problem.ts';

export interface AppErrorOptions {
  readonly cause?: unknown;
  /** One entry per finding, for answers that list them. */
  readonly errors?: readonly ProblemItem[];
  /** Machine-readable facts shown beside the message. */
  readonly details?: Json;
  /** When the same request may succeed, in seconds. */
  readonly retryAfterS?: number;
}

export class AppError extends Error {
  override readonly name = 'AppError';
  readonly code: ErrorCode;
  readonly errors: readonly ProblemItem[] | undefined;
  readonly details: Json | undefined;
  readonly retryAfterS: number | undefined;

  /** @param message what was seen and what was allowed, for a person */
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

/** Unknown errors become `internal` here and nowhere else; the cause is kept for the log, never shown. */
export function toAppError(thrown: unknown): AppError {
  return thrown instanceof AppError
    ? thrown
    : new AppError('internal', 'unexpected fault', { cause: thrown });
}
