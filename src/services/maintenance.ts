/**
 * Repairs what a crash left open, and does the work that no other part does, in one process at a time: the holder of an
 * advisory lock. It counts its repairs; in steady state there are none. createDuties lists the maintenance jobs and
 * their intervals.
 */
import type { Logger } from 'pino';
import { type Metrics, noMetrics } from '../core/telemetry/telemetry.ts';
import { purgeSessions } from '../db/access/session.ts';
import { loseExpiredAttempts } from '../db/attempt/attempt.ts';
import { purgeCachedAnswers } from '../db/attempt/cached-answer.ts';
import { purgeResults } from '../db/attempt/cached-result.ts';
import { deleteDeadLeases } from '../db/attempt/slot-lease.ts';
import { type Db, holdLock, type LockHold } from '../db/connect.ts';
import { cancelOrphanedEscalations } from '../db/escalation/escalation.ts';
import { purgeAdviceAnswers, purgeAnswers } from '../db/idempotency.ts';
import { purgeInstances } from '../db/instance/instance.ts';
import { addParts } from '../db/partitions.ts';
import { cancelOrphanedReviews } from '../db/review/review-delivery.ts';
import { purgeDeliveries } from '../db/webhook.ts';
import { type DeliveryCtx, type DeliveryKind, deliverDue, restartForgotten } from './delivery/deliveries.ts';
import { ladderStarts } from './escalation/ladder/delivery.ts';
import type { MediaLibrary } from './media/media-library.ts';
import type { BudgetKeeper } from './money/budget-keeper.ts';
import { endDrains } from './registry/drain.ts';
import { endedReviews, expireDueReviews } from './reviews/delivery.ts';
import { runCancels, runControls, runStarts, unmarkedStarts } from './runs/delivery.ts';
import { watchCapabilities } from './runs/due-work.ts';
import { changedSchedules } from './schedules/delivery.ts';
import type { WebhookDuty } from './webhooks/delivery.ts';

interface Maintenance {
  start(): void;
  /** Whether this process is the leader, as far as it knows. */
  isHolder(): boolean;
  stop(): Promise<void>;
}

interface MaintenanceOptions {
  readonly db: Db;
  readonly duties: readonly Duty[];
  /** Independent of the ticks of the others. */
  readonly promptDuties: readonly Duty[];
  /** Between two ticks. */
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

interface DutyRunner {
  /** Begins a due job, unless it is running: a slow job does not delay the others. */
  begin(duty: Duty): void;
  /** Resolves when no job is running. */
  settled(): Promise<void>;
}

function createDutyRunner(logger: Logger, metrics: Metrics, isStopping: () => boolean): DutyRunner {
  const underWay = new Map<string, Promise<void>>();
  const restsUntil = new Map<string, number>();
  return {
    begin: ({ name, everyMs, rests = 0, isRoutine = false, isRepair = false, work }) => {
      const began = performance.now();
      if (underWay.has(name) || began < (restsUntil.get(name) ?? -Infinity)) return;
      const task = work(isStopping)
        .then((repaired) => {
          if (repaired > 0 && !isRoutine) logger.info({ duty: name, repaired }, 'repaired');
          if (isRepair) metrics.add('repairs_total', { kind: kindOf(name) }, repaired);
        })
        .catch((error: unknown) => {
          metrics.add('maintenance_failures_total', { duty: kindOf(name) });
          logger.warn({ err: error, duty: name }, 'a maintenance duty failed; it is retried');
        })
        .finally(() => {
          underWay.delete(name);
          const ended = performance.now();
          restsUntil.set(name, ended + Math.max(everyMs, rests * (ended - began)));
        });
      underWay.set(name, task);
    },
    settled: async () => {
      await Promise.all(underWay.values());
    },
  };
}

/** Metrics of every job exist before their first count. */
function announceMetrics(metrics: Metrics, duties: readonly Duty[]): void {
  for (const { name, isRepair } of duties) {
    metrics.add('maintenance_failures_total', { duty: kindOf(name) }, 0);
    if (isRepair === true) metrics.add('repairs_total', { kind: kindOf(name) }, 0);
  }
}

export function createMaintenance(options: MaintenanceOptions): Maintenance {
  const { db, duties, promptDuties, intervalMs, logger, metrics = noMetrics } = options;
  let lock: LockHold | null = null;
  let timer: NodeJS.Timeout | null = null;
  let ticker: NodeJS.Timeout | null = null;
  let round: Promise<void> = Promise.resolve();
  let isStopped = false;
  const runner = createDutyRunner(logger, metrics, () => isStopped);

  const runRound = async (): Promise<void> => {
    if (lock === null || !(await lock.isHeld())) lock = await holdLock(db, lockKey);
    if (lock !== null) for (const duty of duties) runner.begin(duty);
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
      announceMetrics(metrics, [...duties, ...promptDuties]);
      schedule();
      ticker = setInterval(() => {
        if (lock !== null) for (const duty of promptDuties) runner.begin(duty);
      }, tickMs);
    },
    stop: async () => {
      isStopped = true;
      if (timer !== null) clearTimeout(timer);
      if (ticker !== null) clearInterval(ticker);
      await round;
      await runner.settled();
      await lock?.release();
    },
  };
}

// The maintenance jobs and their intervals.

interface Duty {
  readonly name: string;
  readonly everyMs: number;
  /** The minimum rest, as a multiple of the job's duration, for jobs that read more as data grows. */
  readonly rests?: number;
  /** No repair, and not worth a log line. */
  readonly isRoutine?: boolean;
  /** Any result means that a part had died or was away, so it is counted. */
  readonly isRepair?: boolean;
  /** @returns how many things it repaired or did */
  readonly work: (isStopping: () => boolean) => Promise<number>;
}

/** Jobs that keep state between ticks, or belong to parts that do. */
export interface DutyParts {
  readonly dueWork: () => Promise<number>;
  readonly reconcileRuns: () => Promise<number>;
  /** Probes due instances; returns how many. */
  readonly probeDue: (limit: number) => Promise<number>;
  /** Begins due warm-ups of instances; returns how many. */
  readonly beginWarmUps: () => Promise<number>;
  readonly budgets: BudgetKeeper;
  readonly webhooks: WebhookDuty;
  /** Begins to check signed-in people with the provider; absent: there is none. */
  readonly recheckPersons?: (() => void) | undefined;
  readonly media: Pick<MediaLibrary, 'sweep'>;
  /** Deletes data whose retention is over. */
  readonly purgeOld: (isStopping: () => boolean) => Promise<number>;
  /** Seals secrets again after a rotation. */
  readonly resealSecrets: () => Promise<number>;
  /** Continues erasures of projects. */
  readonly eraseProjects: (isStopping: () => boolean) => Promise<number>;
}

const probesAtOnce = 50;
const promptMs = 250;
const minuteMs = 60_000;
const purgeMs = 10 * minuteMs;
/** An upload without progress for a minute is cut off, so one of this age has no client. */
const abandonedMs = 60 * minuteMs;

/** Full batches follow one another at once: after an outage of ours every instance is suspect. */
async function probeWhatIsDue(
  { probeDue }: Pick<DutyParts, 'probeDue'>,
  isStopping: () => boolean,
): Promise<number> {
  let probed = 0;
  let round: number;
  do {
    round = await probeDue(probesAtOnce);
    probed += round;
  } while (round === probesAtOnce && !isStopping());
  return probed;
}

function repair(name: string, everyMs: number, work: Duty['work']): Duty {
  return { name, everyMs, work, isRepair: true };
}

function routine(name: string, everyMs: number, work: Duty['work']): Duty {
  return { name, everyMs, work, isRoutine: true };
}

async function beginRecheck({ recheckPersons }: Pick<DutyParts, 'recheckPersons'>): Promise<number> {
  recheckPersons?.();
  return 0;
}

/** Rows that must reach Temporal, by the job that repeats their delivery. */
const overdue: Readonly<Record<string, readonly DeliveryKind<object>[]>> = {
  deliveries: [runStarts, unmarkedStarts, runCancels, runControls],
  escalations: [ladderStarts],
  reviews: [endedReviews],
  schedules: [changedSchedules],
};

/** @returns how many were delivered, without mere marks */
async function deliverOverdue(ctx: DeliveryCtx, kinds: readonly DeliveryKind<object>[]): Promise<number> {
  let sum = 0;
  for (const kind of kinds) {
    const { delivered } = await deliverDue(ctx, kind);
    if (kind !== unmarkedStarts) sum += delivered;
  }
  return sum;
}

/** The kinds of work that are started again when Temporal has forgotten them. */
const forgettable: Readonly<Record<string, DeliveryKind<object>>> = {
  'forgotten runs': runStarts,
  'forgotten ladders': ladderStarts,
  'forgotten schedules': changedSchedules,
};

/** Jobs that run at every tick, or less often. */
export function createDuties(ctx: DeliveryCtx, parts: DutyParts): readonly Duty[] {
  const { db } = ctx;
  const { budgets } = parts;
  return [
    ...Object.entries(overdue).map(([name, kinds]) => ({
      name,
      everyMs: 0,
      work: () => deliverOverdue(ctx, kinds),
    })),
    { name: 'due reviews', everyMs: 0, work: () => expireDueReviews(ctx) },
    repair('leases', 0, () => loseExpiredAttempts(db)),
    routine('leases of dead processes', minuteMs, () => deleteDeadLeases(db)),
    routine('probes', 0, (isStopping) => probeWhatIsDue(parts, isStopping)),
    routine('drains', 0, () => endDrains(ctx)),
    routine('warm ups', 0, () => parts.beginWarmUps()),
    { name: 'budget marks', everyMs: 0, work: () => budgets.announceMarks().then(() => 0) },
    repair('lost runs', 10_000, () => parts.reconcileRuns()),
    ...Object.entries(forgettable).map(([name, kind]) =>
      repair(name, 5 * minuteMs, () => restartForgotten(ctx, kind)),
    ),
    { ...repair('budgets', minuteMs, () => budgets.reconcile()), rests: 20 },
    { name: 'old answers', everyMs: purgeMs, work: () => purgeAnswers(db) },
    routine('people', 1_000, async () => beginRecheck(parts)),
    routine('old sessions', purgeMs, () => purgeSessions(db)),
    routine('webhooks', 0, () => parts.webhooks.deliverDue()),
    routine('old webhook deliveries', purgeMs, () => purgeDeliveries(db)),
    repair('orphaned escalations', minuteMs, () => cancelOrphanedEscalations(db)),
    repair('orphaned reviews', minuteMs, () => cancelOrphanedReviews(db)),
    { name: 'old advice', everyMs: purgeMs, work: () => purgeAdviceAnswers(db) },
    routine('old results', purgeMs, () => purgeResults(db)),
    routine('old answers', purgeMs, () => purgeCachedAnswers(db)),
    { name: 'abandoned uploads', everyMs: purgeMs, work: () => parts.media.sweep(abandonedMs) },
    { name: 'purge', everyMs: purgeMs, work: () => purgeInstances(db) },
    routine('parts of tables', 60 * minuteMs, () => addParts(db)),
    { name: 'secrets under former keys', everyMs: 10_000, work: parts.resealSecrets },
    routine('erasures', 1_000, parts.eraseProjects),
    routine('retention', purgeMs, parts.purgeOld),
  ];
}

/** Callers wait for these jobs, so they have a faster clock of their own. */
export function createPromptDuties(
  ctx: Pick<DeliveryCtx, 'db'>,
  { dueWork }: Pick<DutyParts, 'dueWork'>,
): readonly Duty[] {
  return [
    routine('due work', promptMs, () => dueWork()),
    routine('capabilities', 2 * promptMs, () => watchCapabilities(ctx)),
  ];
}
