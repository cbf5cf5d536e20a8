/**
 * Repairs what a crash left open, and does what nobody else would, in one process at a time: the holder of an advisory
 * lock. It counts what it repaired; in steady state that is nothing.
 */
import type { Logger } from 'pino';
import { type Metrics, noMetrics } from '../../core/telemetry/metrics.ts';
import type { Db } from '../../db/connect.ts';
import { holdLock, type LockHold } from '../../db/lock.ts';
import type { Duty } from './duties.ts';

export interface Maintenance {
  start(): void;
  /** Whether this process does it, as far as it knows. */
  isHolder(): boolean;
  stop(): Promise<void>;
}

export interface MaintenanceOptions {
  readonly db: Db;
  readonly duties: readonly Duty[];
  /** Not tied to the rounds of the others. */
  readonly promptDuties: readonly Duty[];
  /** Between two rounds. */
  readonly intervalMs: number;
  readonly logger: Logger;
  /** Default: nothing is counted. */
  readonly metrics?: Metrics;
}

const lockKey = 7_236_150_444;
const tickMs = 50;

function kindOf(name: string): string {
  return name.replaceAll(' ', '_');
}

export function createMaintenance({
  db,
  duties,
  promptDuties,
  intervalMs,
  logger,
  metrics = noMetrics,
}: MaintenanceOptions): Maintenance {
  let lock: LockHold | null = null;
  let timer: NodeJS.Timeout | null = null;
  let ticker: NodeJS.Timeout | null = null;
  let round: Promise<void> = Promise.resolve();
  let isStopped = false;
  const underWay = new Map<string, Promise<void>>();
  const restsUntil = new Map<string, number>();

  /** A duty that takes long, like a round of probes, does not hold up the others. */
  const attend = ({ name, everyMs, rests = 0, isRoutine = false, isRepair = false, work }: Duty): void => {
    const began = performance.now();
    if (underWay.has(name) || began < (restsUntil.get(name) ?? -Infinity)) return;
    const task = work(() => isStopped)
      .then((repaired) => {
        if (repaired > 0 && !isRoutine) logger.info({ duty: name, repaired }, 'repaired');
        if (isRepair) metrics.add('repairs_total', { kind: kindOf(name) }, repaired);
      })
      .catch((error: unknown) => {
        metrics.add('maintenance_failures_total', { duty: kindOf(name) });
        logger.warn({ err: error, duty: name }, 'maintenance will try again');
      })
      .finally(() => {
        underWay.delete(name);
        const ended = performance.now();
        restsUntil.set(name, ended + Math.max(everyMs, rests * (ended - began)));
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
    isHolder: () => lock !== null && !isStopped,
    start: () => {
      for (const { name, isRepair } of [...duties, ...promptDuties]) {
        metrics.add('maintenance_failures_total', { duty: kindOf(name) }, 0); // seen before the first
        if (isRepair === true) metrics.add('repairs_total', { kind: kindOf(name) }, 0);
      }
      schedule();
      ticker = setInterval(() => {
        if (lock !== null) for (const duty of promptDuties) attend(duty);
      }, tickMs);
    },
    stop: async () => {
      isStopped = true;
      if (timer !== null) clearTimeout(timer);
      if (ticker !== null) clearInterval(ticker);
      await round;
      await Promise.all(underWay.values());
      await lock?.release();
    },
  };
}
