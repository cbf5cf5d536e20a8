/**
 * Bounds of a definition, a run and related data, for every schema, check, plan and message. A bound that authors or
 * clients see is declared here once, because every module may import contracts; an interval of a single mechanism is
 * declared next to that mechanism. This file imports nothing, not even zod, so that workflows may import it.
 */

/** Steps of a definition, and steps that one request repeats. */
export const mostSteps = 10_000;

/** Items of a step with `for_each`. */
export const mostItems = 10_000;

/** Rounds of a step with `repeat`. */
export const mostRounds = 1_000;

/** Values of a received JSON text (elements of lists, and values of keys), and of a definition's text. */
export const mostValues = 200_000;

/** Numbers that one answer of embeddings writes out; in base64 there may be as many as an answer has room for. */
export const mostEmbeddingNumbers = 1_000_000;

/** Levels of child runs below the first run. */
export const deepestSubRun = 5;

/** Interval of an instance's heartbeats. */
export const heartbeatSeconds = 60;

/** An instance is suspect when its last heartbeat is older. While it answers, it is probed at this interval. */
export const silenceMs = 75_000;

/** How long a reported queue depth is valid. */
export const queueDepthMs = 90_000;

/** An instance that is down for longer is hidden and no longer probed; a heartbeat restores it. */
export const evictedAfterMs = 900_000;

/** Three calls of a project that cost more than their worst case within this time: it does not count for as long. */
export const overrunSpanMs = 3_600_000;

/** Keys of what an instance has loaded. */
export const mostResident = 64;
/** Those of a capability that have times of their own, the newest; others have those of all keys together. */
export const mostTimed = 200;
/** How long the times of a key are kept after its last call. */
export const timedMs = 86_400_000;
export const longestAffinityKey = 128;
/** No key: a list or an object, which may hold the texts of a chat, and what a terminal or database obeys. */
export const unreadableKey = /^\s*[[{]|[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;

/** How long a browser stays signed in. */
export const sessionHours = 12;

/** How long a login link is valid. */
export const loginCodeMinutes = 10;

/** Time limit for a sign-in at a provider. */
export const signInMinutes = 10;

/** Rows of each table are counted up to this number before a project is erased. */
export const erasureCounted = 100_000;

/** How long the answer of a request is kept for its Idempotency-Key. */
export const keptAnswerHours = 24;

/** A count as text for descriptions and messages. */
export function showCount(count: number): string {
  return count.toLocaleString('en-US');
}
