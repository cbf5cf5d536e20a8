/**
 * Runs the duties of maintenance in one process at a time: the holder of an advisory lock. A duty is one job; its name
 * is its key in the table of duties, because the runner knows a duty by its name: the compiler refuses a second one.
 */

import { type Metrics, noMetrics } from '@capstan/core/telemetry/telemetry';
import type { Logger } from 'pino';
import type { Db } from '../db/connect.ts';
import { holdLock, type LockHold } from '../db/locks.ts';

export interface Pace {
  readonly everyMs: number;
  /** The minimum rest, as a multiple of the job's duration, for jobs that read more as data grows. */
  readonly rests?: number;
  /** Callers wait for it, so it has a faster clock of its own. */
  readonly isPrompt?: boolean;
  /** No repair, and not worth a log line. */
  readonly isRoutine?: boolean;
  /** Any result means that a part had died or was away, so it is counted. */
  readonly isRepair?: boolean;
}

export interface Duty extends Pace {
  /** How long it rests after a job that took so long, in place of `everyMs`. */
  readonly restMs?: ((tookMs: number) => number) | undefined;
  /** @returns how many things it repaired or did */
  readonly work: (isStopping: () => boolean) => Promise<number>;
}

/** By their names, which are labels of metrics. */
export type Duties = Readonly<Record<string, Duty>>;

export interface Maintenance {
  start(): void;
  /** Whether this process is the leader, as far as it knows. */
  isHolder(): boolean;
  close(): Promise<void>;
}

export interface MaintenanceOptions {
  readonly db: Db;
  readonly duties: Duties;
  /** Between two ticks. */
  readonly intervalMs: number;
  readonly logger: Logger;
  /** Default: nothing is counted. */
  readonly metrics?: Metrics;
}

/** Between two ticks of the prompt duties. */
const tickMs = 50;

export interface DutyRunner {
  /** Begins a due job, unless it is running: a slow job does not delay the others. */
  begin(name: string, duty: Duty): void;
  /** Resolves when no job is running. */
  settled(): Promise<void>;
}

function createDutyRunner(logger: Logger, metrics: Metrics, isStopping: () => boolean): DutyRunner {
  const underWay = new Map<string, Promise<void>>();
  const restsUntil = new Map<string, number>();
  return {
    begin: (name, { everyMs, rests = 0, isRoutine = false, isRepair = false, restMs, work }) => {
      const began = performance.now();
      if (underWay.has(name) || began < (restsUntil.get(name) ?? -Infinity)) return;
      const task = work(isStopping)
        .then((repaired) => {
          if (repaired > 0 && !isRoutine) logger.info({ duty: name, repaired }, 'repaired');
          if (isRepair) metrics.add('repairs_total', { kind: name }, repaired);
        })
        .catch((error: unknown) => {
          metrics.add('maintenance_failures_total', { duty: name });
          logger.warn({ err: error, duty: name }, 'a maintenance duty failed; it is retried');
        })
        .finally(() => {
          underWay.delete(name);
          const ended = performance.now();
          const tookMs = ended - began;
          restsUntil.set(name, ended + Math.max(restMs?.(tookMs) ?? everyMs, rests * tookMs));
        });
      underWay.set(name, task);
    },
    settled: async () => {
      await Promise.all(underWay.values());
    },
  };
}

/** Metrics of every job exist before their first count. */
function announceMetrics(metrics: Metrics, duties: Duties): void {
  for (const [name, { isRepair }] of Object.entries(duties)) {
    metrics.add('maintenance_failures_total', { duty: name }, 0);
    if (isRepair === true) metrics.add('repairs_total', { kind: name }, 0);
  }
}

export function createMaintenance(options: MaintenanceOptions): Maintenance {
  const { db, duties, intervalMs, logger, metrics = noMetrics } = options;
  let lock: LockHold | null = null;
  let timer: NodeJS.Timeout | null = null;
  let ticker: NodeJS.Timeout | null = null;
  let round: Promise<void> = Promise.resolve();
  let isStopped = false;
  const runner = createDutyRunner(logger, metrics, () => isStopped);

  const beginDuties = (isPromptTick: boolean): void => {
    if (lock === null) return;
    for (const [name, duty] of Object.entries(duties))
      if ((duty.isPrompt ?? false) === isPromptTick) runner.begin(name, duty);
  };

  const runRound = async (): Promise<void> => {
    if (lock === null || !(await lock.isHeld())) lock = await holdLock(db, 'maintenance');
    beginDuties(false);
  };

  const schedule = (): void => {
    if (isStopped) return;
    timer = setTimeout(() => {
      round = runRound()
        .catch((error: unknown) => logger.warn({ err: error }, 'a maintenance round failed; it is retried'))
        .finally(schedule);
    }, intervalMs);
  };

  return {
    isHolder: () => lock !== null && !isStopped,
    start: () => {
      announceMetrics(metrics, duties);
      schedule();
      ticker = setInterval(() => beginDuties(true), tickMs);
    },
    close: async () => {
      isStopped = true;
      if (timer !== null) clearTimeout(timer);
      if (ticker !== null) clearInterval(ticker);
      await round;
      await runner.settled();
      await lock?.release();
    },
  };
}
