/**
 * Long work in pieces, as a generator that yields after each: a caller that serves others takes turns between them, any
 * other finishes it at once.
 */
export type Pieces<Result> = Generator<undefined, Result, undefined>;

/** Does all pieces at once. */
export function finish<Result>(pieces: Pieces<Result>): Result {
  for (;;) {
    const { done, value } = pieces.next();
    if (done === true) return value;
  }
}

/** @param takeTurn waits between two pieces */
export async function finishInTurns<Result>(
  pieces: Pieces<Result>,
  takeTurn: () => Promise<unknown>,
): Promise<Result> {
  for (;;) {
    const { done, value } = pieces.next();
    if (done === true) return value;
    await takeTurn();
  }
}
