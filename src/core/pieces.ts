/** Long work in pieces: between two of them, others may be served. A caller that serves nobody takes them at once. */
export type Pieces<Result> = Generator<undefined, Result>;

export function atOnce<Result>(pieces: Pieces<Result>): Result {
  for (;;) {
    const { done, value } = pieces.next();
    if (done === true) return value;
  }
}

/** Takes a turn before each piece but the first. */
export async function inTurns<Result>(
  pieces: Pieces<Result>,
  takeTurn: () => Promise<unknown>,
): Promise<Result> {
  for (;;) {
    const { done, value } = pieces.next();
    if (done === true) return value;
    await takeTurn();
  }
}
