/**
 * Repairs what a crash left open, in one process at a time: the holder of an advisory lock. It counts what it
 * repaired; in steady state that is nothing.
 */
import type { Logger } from 'pino';
import { loseExpiredAttempts } from '../../db/attempt.ts';
import type { Db } from '../../db/connect.ts';
import { purgeAnswers } from '../../db/idempotency.ts';
import { holdLock, type LockHold } from '../../db/lock.ts';
import type { RegistryService } from '../registry/registry-service.ts';
import type { RunDelivery } from '../runs/deliver-run.ts';

export interface Maintenance {
  start(): void;
  stop(): Promise<void>;
}

const lockKey = 7_236_150_444;
const purgeEveryMs = 600_000;

export const createMaintenance = ({
  db,
  delivery,
  registry,
  intervalMs,
  logger,
}: {
  readonly db: Db;
  readonly delivery: Pick<RunDelivery, 'deliverOverdue'>;
  readonly registry: Pick<RegistryService, 'probeDue'>;
  readonly intervalMs: number;
  readonly logger: Logger;
}): Maintenance => {
  let lock: LockHold | null = null;
  let timer: NodeJS.Timeout | null = null;
  let round: Promise<void> = Promise.resolve();
  let isStopped = false;
  let lastPurge = performance.now();

  const duties: readonly { name: string; work: () => Promise<number> }[] = [
    { name: 'deliveries', work: () => delivery.deliverOverdue() },
    { name: 'leases', work: () => loseExpiredAttempts(db) },
    { name: 'probes', work: () => registry.probeDue() },
  ];

  const runRound = async (): Promise<void> => {
    if (lock === null || !(await lock.isHeld())) lock = await holdLock(db, lockKey);
    if (lock === null) return;
    for (const { name, work } of duties) {
      try {
        const repaired = await work();
        if (repaired > 0 && name !== 'probes') logger.info({ duty: name, repaired }, 'repaired');
      } catch (error) {
        logger.warn({ error, duty: name }, 'maintenance will try again');
      }
    }
    if (performance.now() - lastPurge > purgeEveryMs) {
      lastPurge = performance.now();
      await purgeAnswers(db);
    }
  };

  const schedule = (): void => {
    if (isStopped) return;
    timer = setTimeout(() => {
      round = runRound()
        .catch((error: unknown) => logger.warn({ error }, 'maintenance will try again'))
        .finally(schedule);
    }, intervalMs);
  };

  return {
    start: schedule,
    stop: async () => {
      isStopped = true;
      if (timer !== null) clearTimeout(timer);
      await round;
      await lock?.release();
    },
  };
};
