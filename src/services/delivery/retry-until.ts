import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from 'pino';

const retryMs = 20_000;
const pauseMs = 250;

/**
 * Repeats a write for 20 s: an answer that cost twenty minutes is not thrown away because the database was gone for
 * two seconds. Only for writes that may be repeated.
 */
export async function retryUntil<Result>(write: () => Promise<Result>, logger: Logger): Promise<Result> {
  const deadline = performance.now() + retryMs;
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if (performance.now() > deadline) throw error;
      logger.warn({ err: error }, 'an answer could not be stored; trying again');
      await pause(pauseMs);
    }
  }
}
