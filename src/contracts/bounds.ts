/**
 * How large a definition, a run and what follows from them may become, wherever a schema, a check, a plan or a message
 * says so. A bound that an author or a client is told of stands here once, because everything else may import contracts;
 * the clock of one mechanism stands beside that mechanism. Nothing is imported here, not even zod, so that the workflows
 * may read it.
 */

/** Steps of a definition, and of all that are executed again at once. */
export const mostSteps = 10_000;

/** Items of a step with `for_each`. */
export const mostItems = 10_000;

/** Values of a JSON text that is taken in, elements of lists and keys' values alike, and of the text of a definition. */
export const mostValues = 200_000;

/** How many runs deep a pipeline may run pipelines, the first run not counted. */
export const deepestSubRun = 5;

/** How often an instance says that it is alive. */
export const heartbeatSeconds = 60;

/** An instance whose last heartbeat is older is suspect, and is looked at as often while it answers all the same. */
export const silenceMs = 75_000;

/** What an instance has said of its queue counts for so long. */
export const queueDepthMs = 90_000;

/** An instance that is down for so long is hidden and not looked at any more; a heartbeat brings it back. */
export const evictedAfterMs = 900_000;

/** How long a browser stays signed in. */
export const sessionHours = 12;

/** How long a login link can be used. */
export const loginCodeMinutes = 10;

/** How long signing in at a provider may take. */
export const signInMinutes = 10;

/** As far as rows of a project are counted before it is erased, of each table. */
export const erasureCounted = 100_000;

/** A count as descriptions and messages for people write it. */
export function showCount(count: number): string {
  return count.toLocaleString('en-US');
}
