export type Turns = () => Promise<unknown>;

/**
 * Work that holds the event loop for long, one piece in each turn of it, so that what is small is served between them.
 * @param nextTurn resolves when the event loop has looked at everything else once
 * @returns resolves when it is the caller's turn; what it does at once then is its piece
 */
export function createTurns(nextTurn: () => Promise<unknown>): Turns {
  let last: Promise<unknown> = Promise.resolve();
  return () => {
    last = last.then(nextTurn);
    return last;
  };
}

/** Texts of so many bytes are read in turns. */
export const largeTextBytes = 65_536;
