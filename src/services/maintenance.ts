/**
 * Repairs what a crash left open, and does what no other part would, in one process at a time: the holder of an
 * advisory lock. It counts what it repaired; in steady state that is nothing. Its duties, and how often each is
 * done, are listed in createDuties.
 */
import type { Logger } from 'pino';
import { type Metrics, noMetrics } from '../core/telemetry/telemetry.ts';
import { purgeSessions } from '../db/access/session.ts';
import { loseExpiredAttempts } from '../db/attempt/attempt.ts';
import { purgeResults } from '../db/attempt/cached-result.ts';
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
import { endedReviews, expireDueReviews } from './reviews/delivery.ts';
import { runCancels, runControls, runStarts, unmarkedStarts } from './runs/delivery.ts';
import { watchCapabilities } from './runs/due-work.ts';
import { changedSchedules } from './schedules/delivery.ts';
import type { WebhookDuty } from './webhooks/delivery.ts';

interface Maintenance {
  start(): void;
  /** Whether this process does it, as far as it knows. */
  isHolder(): boolean;
  stop(): Promise<void>;
}

interface MaintenanceOptions {
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

interface DutyRunner {
  /** Begins a duty that is due, unless it is under way: one that takes long does not hold up the others. */
  begin(duty: Duty): void;
  /** Resolves when no duty is under way any more. */
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
          logger.warn({ err: error, duty: name }, 'maintenance will try again');
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

/** Metrics of every duty are seen before they first count. */
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
        .catch((error: unknown) => logger.warn({ err: error }, 'maintenance will try again'))
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

// What maintenance does, and how often.

interface Duty {
  readonly name: string;
  readonly everyMs: number;
  /** How many times as long as it took it rests at least, where it reads more the more there is. */
  readonly rests?: number;
  /** It is no repair, and what it does is not worth a word. */
  readonly isRoutine?: boolean;
  /** Whatever it finds to do, a part had died or was away: it is counted. */
  readonly isRepair?: boolean;
  /** @returns how many things it repaired or did */
  readonly work: (isStopping: () => boolean) => Promise<number>;
}

/** Duties that keep state between rounds, or belong to parts that do. */
export interface DutyParts {
  readonly dueWork: () => Promise<number>;
  readonly reconcileRuns: () => Promise<number>;
  /** Probes instances that are due; answers how many. */
  readonly probeDue: (limit: number) => Promise<number>;
  readonly budgets: BudgetKeeper;
  readonly webhooks: WebhookDuty;
  /** Begins to ask the provider about people who are signed in; absent: there is none. */
  readonly recheckPersons?: (() => void) | undefined;
  readonly media: Pick<MediaLibrary, 'sweep'>;
  /** Deletes what is older than it has to be kept. */
  readonly purgeOld: (isStopping: () => boolean) => Promise<number>;
  /** Goes on with erasures of projects. */
  readonly eraseProjects: (isStopping: () => boolean) => Promise<number>;
}

const probesAtOnce = 50;
const promptMs = 250;
const minuteMs = 60_000;
const purgeMs = 10 * minuteMs;
/** An upload without progress for a minute is cut off, so one of this age has no client any more. */
const abandonedMs = 60 * minuteMs;

/** Full rounds follow one another at once: after an outage of ours everything is suspect. */
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

/** Rows that must reach Temporal, by the duty that makes up for them. */
const overdue: Readonly<Record<string, readonly DeliveryKind<object>[]>> = {
  deliveries: [runStarts, unmarkedStarts, runCancels, runControls],
  escalations: [ladderStarts],
  reviews: [endedReviews],
  schedules: [changedSchedules],
};

/** @returns how many were delivered, but for those that are no news */
async function deliverOverdue(ctx: DeliveryCtx, kinds: readonly DeliveryKind<object>[]): Promise<number> {
  let sum = 0;
  for (const kind of kinds) {
    const { delivered } = await deliverDue(ctx, kind);
    if (kind !== unmarkedStarts) sum += delivered;
  }
  return sum;
}

/** The kinds of work that start again when Temporal has forgotten them. */
const forgettable: Readonly<Record<string, DeliveryKind<object>>> = {
  'forgotten runs': runStarts,
  'forgotten ladders': ladderStarts,
  'forgotten schedules': changedSchedules,
};

/** Done as often as the rounds of maintenance, or more seldom. */
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
    routine('probes', 0, (isStopping) => probeWhatIsDue(parts, isStopping)),
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
    { name: 'abandoned uploads', everyMs: purgeMs, work: () => parts.media.sweep(abandonedMs) },
    { name: 'purge', everyMs: purgeMs, work: () => purgeInstances(db) },
    routine('parts of tables', 60 * minuteMs, () => addParts(db)),
    routine('erasures', 1_000, parts.eraseProjects),
    routine('retention', purgeMs, parts.purgeOld),
  ];
}

/** Callers wait for these duties, so they have a shorter clock of their own. */
export function createPromptDuties(
  ctx: Pick<DeliveryCtx, 'db'>,
  { dueWork }: Pick<DutyParts, 'dueWork'>,
): readonly Duty[] {
  return [
    routine('due work', promptMs, () => dueWork()),
    routine('capabilities', 2 * promptMs, () => watchCapabilities(ctx)),
  ];
}
