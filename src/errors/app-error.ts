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

/** The database's: functions/refuse-erased.sql.ts. */
const projectErased = 'CAP01';
/** Of Postgres: a foreign key finds no row. */
const noSuchRow = '23503';

/** An equal definition went, with the last that named it, between the look whether it is stored and the row that names it. */
function hasLostDefinition(fault: { readonly code: unknown; readonly constraint?: unknown }): boolean {
  return fault.code === noSuchRow && String(fault.constraint).endsWith('_digest_fkey');
}

/** Unknown errors become `internal` here and nowhere else; the cause is kept for the log, never shown. */
export function toAppError(thrown: unknown): AppError {
  if (thrown instanceof AppError) return thrown;
  if (thrown instanceof Error && 'code' in thrown) {
    const options = { cause: thrown };
    if (thrown.code === projectErased)
      return new AppError('state_conflict', 'the project is being erased; it takes no new work', options);
    if (hasLostDefinition(thrown))
      return new AppError('unavailable', 'the definition was deleted at this very moment; ask again', {
        ...options,
        retryAfterS: 0,
      });
  }
  return new AppError('internal', 'unexpected fault', { cause: thrown });
}
