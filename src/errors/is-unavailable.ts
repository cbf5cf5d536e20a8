/** Which faults say that a part is not there for now, so that the same may succeed later. */

/** Node's connection errors, and Postgres' classes 08, 53, 57 as far as they say "not now". */
const unavailableCodes =
  /^(ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|08...|53[0-3]00|57P0[1-5]|57014|55P03)$/;

/** The one exception to "nobody matches on message text": pg gives these errors neither a code nor a class. */
const unavailableMessage = /^Connection (terminated|ended) unexpectedly|^timeout expired|^Query read timeout/;

export function isUnavailable(thrown: unknown): boolean {
  return (
    thrown instanceof Error &&
    (thrown.name === 'KnexTimeoutError' ||
      unavailableMessage.test(thrown.message) ||
      ('code' in thrown && unavailableCodes.test(String(thrown.code))))
  );
}
