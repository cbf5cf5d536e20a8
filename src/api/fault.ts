/** What an unknown error means to a client: our database being away is `unavailable`, all else is `internal`. */
import { AppError, toAppError } from '../errors.ts';

/** Node's connection errors, and Postgres' classes 08, 53, 57 as far as they say "not now". */
const awayCodes =
  /^(ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|08...|53[0-3]00|57P0[1-5]|57014|55P03)$/;

const awayMessage = /^Connection (terminated|ended) unexpectedly|^timeout expired/;

const isAway = (thrown: unknown): boolean =>
  thrown instanceof Error &&
  (thrown.name === 'KnexTimeoutError' ||
    awayMessage.test(thrown.message) ||
    ('code' in thrown && awayCodes.test(String(thrown.code))));

export const translateFault = (thrown: unknown): AppError =>
  !(thrown instanceof AppError) && isAway(thrown)
    ? new AppError('unavailable', 'the database does not answer', { cause: thrown, retryAfterS: 1 })
    : toAppError(thrown);
