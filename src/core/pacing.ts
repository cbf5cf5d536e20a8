/**
 * How work waits: a poll between two rounds, a long piece of work for its turn on the event loop, a caller for equal
 * work that is under way, and for no longer than it may.
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

/**
 * Joins the work of that name that is under way, or begins it, so that this process does it once however many ask at
 * the same time. It is forgotten when it ends: whoever asks then begins it anew.
 */
export function joinFlight<Result>(
  underWay: Map<string, Promise<Result>>,
  name: string,
  begin: () => Promise<Result>,
): Promise<Result> {
  const known = underWay.get(name);
  if (known !== undefined) return known;
  const flight = begin().finally(() => underWay.delete(name));
  underWay.set(name, flight);
  return flight;
}

/**
 * What the work gives, or what `late` gives or throws when the time is over before. Work that is late goes on, and how
 * it ends is not heard any more. The timer keeps no process alive.
 */
export async function within<Result, Late>(
  work: Promise<Result>,
  ms: number,
  late: () => Late,
): Promise<Result | Late> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms).unref();
  });
  try {
    return await Promise.race([work, over.then(late)]);
  } finally {
    clearTimeout(timer);
  }
}
