import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Polls until the condition is truthy and answers it.
 * @throws Error naming `what` when the condition does not hold within the deadline
 */
export async function waitFor<Value>(
  what: string,
  condition: () => Value | Promise<Value>,
  deadlineMs = 15_000,
): Promise<NonNullable<Value>> {
  const deadline = performance.now() + deadlineMs;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (performance.now() > deadline) throw new Error(`${what}: not within ${deadlineMs} ms`);
    await sleep(20);
  }
}
