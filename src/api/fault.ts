/** What an unknown error means to a client: our database being away is `unavailable`, all else is `internal`. */

import { AppError, toAppError } from '../errors/app-error.ts';
import { isUnavailable } from '../errors/is-unavailable.ts';

export function translateFault(thrown: unknown): AppError {
  return !(thrown instanceof AppError) && isUnavailable(thrown)
    ? new AppError('unavailable', 'the database does not answer', { cause: thrown, retryAfterS: 1 })
    : toAppError(thrown);
}
