/** Pacing: the pause between two polls, turns of the event loop for long work, shared work, and time limits. */

/**
 * The pause of a poll before its next round. Changes come in bursts, so rounds are close together after a change and
 * grow apart while nothing changes. The delay is at most a fifth of the preceding quiet, between `shortestPauseMs` and
 * `longestPauseMs`; the latter is reached after a little more than a second. Slow rounds are spaced out: a poll works
 * at most a fifth of the time.
 */

export const shortestPauseMs = 25;
/** The longest pause, while nothing changes. */
export const longestPauseMs = 250;
const partOfQuiet = 1 / 5;
/** The pause after a round, as a multiple of its duration. */
const restAfterRound = 4;

/**
 * @param quietMs since the last change, or since the last reader began to wait
 * @param roundMs duration of the last round
 */
export function pauseAfter(quietMs: number, roundMs: number): number {
  const pauseMs = Math.max(shortestPauseMs, quietMs * partOfQuiet, roundMs * restAfterRound);
  return Math.min(pauseMs, longestPauseMs);
}

export type Turns = () => Promise<unknown>;

/**
 * Splits long work over turns of the event loop, so that short tasks are served in between.
 * @param nextTurn resolves after the event loop has served everything else once
 * @returns resolves at the caller's turn; the synchronous work that follows is one piece
 */
export function createTurns(nextTurn: () => Promise<unknown>): Turns {
  let last: Promise<unknown> = Promise.resolve();
  return () => {
    last = last.then(nextTurn);
    return last;
  };
}

/** Texts of at least this many bytes are read in turns. */
export const largeTextBytes = 65_536;

/**
 * Joins the work in flight of that name, or starts it, so that this process does it once for all concurrent callers. A
 * caller after its end starts it again.
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
 * The result of the work; after the time limit, what `late` returns or throws. Late work continues, and its outcome is
 * ignored. The timer does not keep the process alive. A process that wakes late first takes what has arrived.
 */
export async function within<Result, Late>(
  work: Promise<Result>,
  ms: number,
  late: () => Late,
): Promise<Result | Late> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(() => setImmediate(resolve), ms).unref();
  });
  try {
    return await Promise.race([work, over.then(late)]);
  } finally {
    clearTimeout(timer);
  }
}
