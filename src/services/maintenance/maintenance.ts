/**
 * Repairs what a crash left open, in one process at a time: the holder of an advisory lock. It counts what it
 * repaired; in steady state that is nothing.
 */
import type { Logger } from 'pino';
import { purgeAdviceAnswers } from '../../db/advice-answer.ts';
import { loseExpiredAttempts } from '../../db/attempt.ts';
import type { Db } from '../../db/connect.ts';
import { cancelOrphanedEscalations } from '../../db/escalation.ts';
import { purgeAnswers } from '../../db/idempotency.ts';
import { purgeInstances } from '../../db/instance-purge.ts';
import { holdLock, type LockHold } from '../../db/lock.ts';
import { cancelOrphanedReviews } from '../../db/review-delivery.ts';
import type { EscalationDelivery } from '../escalation/deliver-escalation.ts';
import type { BudgetKeeper } from '../money/budget-keeper.ts';
import type { RegistryService } from '../registry/registry-service.ts';
import type { ReviewDelivery } from '../reviews/deliver-review.ts';
import type { RunDelivery } from '../runs/deliver-run.ts';

export interface Maintenance {
  start(): void;
  stop(): Promise<void>;
}

const lockKey = 7_236_150_444;
const probesAtOnce = 50;

interface Duty {
  readonly name: string;
  readonly everyMs: number;
  /** @returns how many things it repaired */
  readonly work: () => Promise<number>;
}

export const createMaintenance = ({
  db,
  delivery,
  escalations,
  reviews,
  registry,
  budgets,
  intervalMs,
  logger,
}: {
  readonly db: Db;
  readonly delivery: Pick<RunDelivery, 'deliverOverdue'>;
  readonly escalations: Pick<EscalationDelivery, 'deliverOverdue'>;
  readonly reviews: Pick<ReviewDelivery, 'deliverOverdue' | 'expireDue'>;
  readonly registry: Pick<RegistryService, 'probeDue'>;
  readonly budgets: BudgetKeeper;
  readonly intervalMs: number;
  readonly logger: Logger;
}): Maintenance => {
  let lock: LockHold | null = null;
  let timer: NodeJS.Timeout | null = null;
  let round: Promise<void> = Promise.resolve();
  let isStopped = false;

  /** Full rounds follow one another at once: after an outage of ours everything is suspect. */
  const probeWhatIsDue = async (): Promise<number> => {
    let probed = 0;
    let round: number;
    do {
      round = await registry.probeDue(probesAtOnce);
      probed += round;
    } while (round === probesAtOnce && !isStopped);
    return probed;
  };

  const duties: readonly Duty[] = [
    { name: 'deliveries', everyMs: 0, work: () => delivery.deliverOverdue() },
    { name: 'escalations', everyMs: 0, work: () => escalations.deliverOverdue() },
    { name: 'reviews', everyMs: 0, work: () => reviews.deliverOverdue() },
    { name: 'due reviews', everyMs: 0, work: () => reviews.expireDue() },
    { name: 'leases', everyMs: 0, work: () => loseExpiredAttempts(db) },
    { name: 'probes', everyMs: 0, work: () => probeWhatIsDue() },
    { name: 'budget marks', everyMs: 0, work: () => budgets.announceMarks().then(() => 0) },
    { name: 'budgets', everyMs: 60_000, work: () => budgets.reconcile() },
    { name: 'old answers', everyMs: 600_000, work: () => purgeAnswers(db) },
    { name: 'orphaned escalations', everyMs: 60_000, work: () => cancelOrphanedEscalations(db) },
    { name: 'orphaned reviews', everyMs: 60_000, work: () => cancelOrphanedReviews(db) },
    { name: 'old advice', everyMs: 600_000, work: () => purgeAdviceAnswers(db) },
    { name: 'purge', everyMs: 600_000, work: () => purgeInstances(db) },
  ];
  const underWay = new Map<string, Promise<void>>();
  const doneAt = new Map<string, number>();

  /** A duty that takes long, like a round of probes, does not hold up the others. */
  const attend = ({ name, everyMs, work }: Duty): void => {
    if (underWay.has(name) || performance.now() < (doneAt.get(name) ?? -Infinity) + everyMs) return;
    const task = work()
      .then((repaired) => {
        if (repaired > 0 && name !== 'probes') logger.info({ duty: name, repaired }, 'repaired');
      })
      .catch((error: unknown) => logger.warn({ err: error, duty: name }, 'maintenance will try again'))
      .finally(() => {
        underWay.delete(name);
        doneAt.set(name, performance.now());
      });
    underWay.set(name, task);
  };

  const runRound = async (): Promise<void> => {
    if (lock === null || !(await lock.isHeld())) lock = await holdLock(db, lockKey);
    if (lock !== null) for (const duty of duties) attend(duty);
  };

  const schedule = (): void => {
    if (isStopped) return;
    timer = setTimeout(() => {
      round = runRound()
        .catch((error: unknown) => logger.warn({ err: error }, 'maintenance will try again'))
        .finally(schedule);
    }, intervalMs);
  };

  return {
    start: schedule,
    stop: async () => {
      isStopped = true;
      if (timer !== null) clearTimeout(timer);
      await round;
      await Promise.all(underWay.values());
      await lock?.release();
    },
  };
};
