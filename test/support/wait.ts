import { setTimeout as sleep } from 'node:timers/promises';

/** A check may be a request to a busy server: the longer the wait, the rarer the checks. */
function pauseAfter(elapsedMs: number): number {
  return Math.min(100, Math.max(20, elapsedMs / 5));
}

/**
 * Polls until the condition is truthy and returns its value.
 * @throws Error naming `what` when the condition does not hold within the deadline
 */
export async function waitFor<Value>(
  what: string,
  condition: () => Value | Promise<Value>,
  deadlineMs = 120_000,
): Promise<NonNullable<Value>> {
  const startedAt = performance.now();
  for (;;) {
    const value = await condition();
    if (value) return value;
    const elapsedMs = performance.now() - startedAt;
    if (elapsedMs > deadlineMs) throw new Error(`${what}: not within ${deadlineMs} ms`);
    await sleep(pauseAfter(elapsedMs));
  }
}
