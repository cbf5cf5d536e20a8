/**
 * Writes that are repeated until they are written: an answer that cost twenty minutes, and the money that a call still
 * holds, are not thrown away because the database was gone. Only for writes that may be repeated. What the database
 * refuses for its content is given up after a while; all else only when the process ends.
 */
import type { Logger } from 'pino';

export interface Insistence {
  /** @throws what the write threw last, when it is given up */
  insist<Result>(write: () => Promise<Result>): Promise<Result>;
  /** The process ends: what cannot be written within some seconds is given up. */
  finish(): void;
  /** Finishes, and resolves when nothing is under way any more. */
  settled(): Promise<void>;
}

export interface InsistenceOptions {
  /** Whether what was to be written may be the reason. */
  readonly isItemsFault: (error: unknown) => boolean;
  readonly logger: Logger;
}

const firstPauseMs = 250;
/** How long it goes on with what may never be taken. */
const doubtMs = 20_000;
/** How long it goes on when the process ends. */
const graceMs = 8_000;
const longestPauseMs = 4_000;

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export function createInsistence({ isItemsFault, logger }: InsistenceOptions): Insistence {
  const open = new Set<Promise<unknown>>();
  let endsAt = Number.POSITIVE_INFINITY;

  const repeat = async <Result>(write: () => Promise<Result>): Promise<Result> => {
    const startedAt = performance.now();
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
      try {
        return await write();
      } catch (error) {
        const doubtEndsAt = isItemsFault(error) ? startedAt + doubtMs : endsAt;
        const leftMs = Math.min(doubtEndsAt, endsAt) - performance.now();
        if (leftMs <= 0) throw error;
        logger.warn({ err: error }, 'how a call ended could not be stored; trying again');
        await pause(Math.min(pauseMs, leftMs));
      }
    }
  };
  const finish = (): void => {
    endsAt = Math.min(endsAt, performance.now() + graceMs);
  };
  return {
    insist: (write) => {
      const task = repeat(write);
      const end = (): boolean => open.delete(task);
      open.add(task);
      task.then(end, end);
      return task;
    },
    finish,
    settled: async () => {
      finish();
      while (open.size > 0) await Promise.allSettled(open);
    },
  };
}
