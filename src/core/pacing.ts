/**
 * How work rests, so that other work gets its turn: a poll between two rounds, a long piece of work on the event
 * loop.
 */

/**
 * How long a poll rests before its next round. What somebody follows comes in bursts, so rounds are close to one another
 * while news come, and further apart the longer none has come: news are late by at most a fifth of the quiet before
 * them, by `shortestPauseMs` at least and by `longestPauseMs` at most, which is reached after a little more than a second.
 * Rounds that are slow themselves come less often: a poll works a fifth of the time at most.
 */

export const shortestPauseMs = 25;
/** Where nothing happens. */
export const longestPauseMs = 250;
const partOfQuiet = 1 / 5;
/** So many times as long as the round took. */
const restAfterRound = 4;

/** @param quietMs since news came, or since somebody came who waits for them. @param roundMs how long the last round took */
export function pauseAfter(quietMs: number, roundMs: number): number {
  const pauseMs = Math.max(shortestPauseMs, quietMs * partOfQuiet, roundMs * restAfterRound);
  return Math.min(pauseMs, longestPauseMs);
}

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
