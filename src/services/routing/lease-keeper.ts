/**
 * Keeps the leases of this process's open attempts alive, all by one statement per interval. An attempt that is
 * no longer ours (a later one has taken over) is told to stop.
 */
import type { Logger } from 'pino';
import { renewLeases } from '../../db/attempt.ts';
import type { Db } from '../../db/connect.ts';

export interface LeaseKeeper {
  /** @param onLost called once when the lease went to somebody else */
  hold(attempt: { attempt_id: string; token: string }, onLost: () => void): () => void;
  stop(): void;
}

export const createLeaseKeeper = ({
  db,
  leaseMs,
  logger,
}: {
  readonly db: Db;
  readonly leaseMs: number;
  readonly logger: Logger;
}): LeaseKeeper => {
  const held = new Map<string, { attempt_id: string; token: string; onLost: () => void }>();

  const renew = async (): Promise<void> => {
    const now = [...held.values()];
    if (now.length === 0) return;
    const kept = await renewLeases(db, now, leaseMs);
    for (const { attempt_id, onLost } of now) {
      if (!kept.has(attempt_id) && held.delete(attempt_id)) onLost();
    }
  };

  let timer: NodeJS.Timeout | null = null;
  const schedule = (pauseMs: number): void => {
    timer = setTimeout(() => {
      renew().then(
        () => schedule(leaseMs / 3),
        (error: unknown) => {
          logger.warn({ err: error }, 'leases could not be renewed; trying again');
          schedule(leaseMs / 30);
        },
      );
    }, pauseMs);
    timer.unref();
  };
  schedule(leaseMs / 3);

  return {
    hold: (attempt, onLost) => {
      held.set(attempt.attempt_id, { ...attempt, onLost });
      return () => held.delete(attempt.attempt_id);
    },
    stop: () => {
      if (timer !== null) clearTimeout(timer);
    },
  };
};
