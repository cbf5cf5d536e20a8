import { purgeSessions } from '../db/access/session.ts';
import { loseExpiredAttempts } from '../db/attempt/attempt.ts';
import { purgeCachedAnswers } from '../db/attempt/cached-answer.ts';
import { purgeResults } from '../db/attempt/cached-result.ts';
import { purgeContents } from '../db/attempt/call-content.ts';
import { deleteDeadLeases } from '../db/attempt/slot-lease.ts';
import type { Db } from '../db/connect.ts';
import { cancelOrphanedEscalations } from '../db/escalation/escalation.ts';
import { purgeAdviceAnswers, purgeAnswers } from '../db/idempotency.ts';
import { purgeHosts } from '../db/instance/host.ts';
import { purgeInstances } from '../db/instance/instance.ts';
import { purgeLoadTimes } from '../db/instance/residency.ts';
import { addParts } from '../db/partitions.ts';
import { cancelOrphanedReviews } from '../db/review/review-delivery.ts';
import { purgeGaps } from '../db/schedule.ts';
import { purgeEvents } from '../db/step/event-wait.ts';
import { purgeReceived } from '../db/webhook/hook.ts';
import { purgeDeliveries } from '../db/webhook/webhook.ts';
import type { BudgetKeeper } from '../parts/budget-keeper.ts';
import {
  type DeliveryCtx,
  type DeliveryKind,
  deliverDue,
  restartForgotten,
} from '../parts/delivery/deliveries.ts';
import type { Duties, Duty, Pace } from '../parts/maintenance.ts';
import type { MediaLibrary } from '../parts/media/media-library.ts';
import { ladderStarts } from './escalation/ladder/delivery.ts';
import { endDrains } from './registry/drain.ts';
import { endedReviews, expireDueReviews } from './reviews/delivery.ts';
import { runCancels, runControls, runStarts, unmarkedStarts } from './runs/delivery.ts';
import { watchCapabilities } from './runs/due-work.ts';
import { changedSchedules } from './schedules/delivery.ts';
import type { WebhookDuty } from './webhooks/delivery.ts';

// The maintenance jobs and their intervals.

/** Jobs that keep state between ticks, or belong to parts that do. */
export interface DutyParts {
  readonly dueWork: () => Promise<number>;
  /** Whether calls wait for a slot. */
  readonly hasLines: () => boolean;
  readonly reconcileRuns: () => Promise<number>;
  /** Ends calls that are answered later and that no worker ends; returns how many. */
  readonly endLeftCalls: () => Promise<number>;
  readonly watchStalls: () => Promise<number>;
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
  /** Accounts for starts of schedules; returns how many were missed. */
  readonly watchStarts: () => Promise<number>;
  /** Starts what is due of backfills; returns how many runs. */
  readonly fillBack: () => Promise<number>;
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

async function beginRecheck({ recheckPersons }: Pick<DutyParts, 'recheckPersons'>): Promise<number> {
  recheckPersons?.();
  return 0;
}

/** Delivers rows that must reach Temporal. @returns how many were delivered, without mere marks */
async function deliverOverdue(ctx: DeliveryCtx, ...kinds: readonly DeliveryKind<object>[]): Promise<number> {
  let sum = 0;
  for (const kind of kinds) {
    const { delivered } = await deliverDue(ctx, kind);
    if (kind !== unmarkedStarts) sum += delivered;
  }
  return sum;
}

/** What the work of a duty needs. */
interface Resources {
  readonly ctx: DeliveryCtx;
  readonly db: Db;
  readonly parts: DutyParts;
}

interface DutyOf extends Pace {
  readonly restMs?: (resources: Resources, tookMs: number) => number;
  readonly work: (resources: Resources, isStopping: () => boolean) => Promise<number>;
}

function repair(everyMs: number, work: DutyOf['work']): DutyOf {
  return { everyMs, work, isRepair: true };
}

function routine(everyMs: number, work: DutyOf['work']): DutyOf {
  return { everyMs, work, isRoutine: true };
}

function prompt(everyMs: number, work: DutyOf['work']): DutyOf {
  return { everyMs, work, isRoutine: true, isPrompt: true };
}

/** After a sleep of the machine all leases look expired, until the processes that slept with this one renew theirs. */
async function loseExpired({ db, freezes, config }: DeliveryCtx): Promise<number> {
  return freezes.awakeMs(performance.now()) < config.LEASE_MS / 2 ? 0 : loseExpiredAttempts(db);
}

/** Every duty of maintenance. One with `everyMs: 0` runs at every tick. */
const duties: Readonly<Record<string, DutyOf>> = {
  due_work: {
    ...prompt(promptMs, ({ parts }) => parts.dueWork()),
    // Free slots wait for calls in line, so the next look is soon; long lines take longer.
    restMs: ({ parts }, tookMs) => (parts.hasLines() ? Math.min(promptMs, 4 * tookMs) : promptMs),
  },
  capabilities: prompt(2 * promptMs, ({ ctx }) => watchCapabilities(ctx)),
  deliveries: {
    everyMs: 0,
    work: ({ ctx }) => deliverOverdue(ctx, runStarts, unmarkedStarts, runCancels, runControls),
  },
  escalations: { everyMs: 0, work: ({ ctx }) => deliverOverdue(ctx, ladderStarts) },
  reviews: { everyMs: 0, work: ({ ctx }) => deliverOverdue(ctx, endedReviews) },
  schedules: { everyMs: 0, work: ({ ctx }) => deliverOverdue(ctx, changedSchedules) },
  due_reviews: { everyMs: 0, work: ({ ctx }) => expireDueReviews(ctx) },
  leases: repair(0, ({ ctx }) => loseExpired(ctx)),
  later_answers: routine(1_000, ({ parts }) => parts.endLeftCalls()),
  leases_of_dead_processes: routine(minuteMs, ({ db }) => deleteDeadLeases(db)),
  probes: routine(0, ({ parts }, isStopping) => probeWhatIsDue(parts, isStopping)),
  drains: routine(0, ({ ctx }) => endDrains(ctx)),
  warm_ups: routine(0, ({ parts }) => parts.beginWarmUps()),
  budget_marks: { everyMs: 0, work: ({ parts }) => parts.budgets.announceMarks().then(() => 0) },
  stalled_runs: { everyMs: 5_000, work: ({ parts }) => parts.watchStalls() },
  lost_runs: repair(10_000, ({ parts }) => parts.reconcileRuns()),
  forgotten_runs: repair(5 * minuteMs, ({ ctx }) => restartForgotten(ctx, runStarts)),
  forgotten_ladders: repair(5 * minuteMs, ({ ctx }) => restartForgotten(ctx, ladderStarts)),
  forgotten_schedules: repair(5 * minuteMs, ({ ctx }) => restartForgotten(ctx, changedSchedules)),
  budgets: { ...repair(minuteMs, ({ parts }) => parts.budgets.reconcile()), rests: 20 },
  people: routine(1_000, ({ parts }) => beginRecheck(parts)),
  webhooks: routine(0, ({ parts }) => parts.webhooks.deliverDue()),
  orphaned_escalations: repair(minuteMs, ({ db }) => cancelOrphanedEscalations(db)),
  orphaned_reviews: repair(minuteMs, ({ db }) => cancelOrphanedReviews(db)),
  old_sessions: routine(purgeMs, ({ db }) => purgeSessions(db)),
  old_webhook_deliveries: routine(purgeMs, ({ db }) => purgeDeliveries(db)),
  old_gaps_of_schedules: routine(purgeMs, ({ db }) => purgeGaps(db)),
  old_hook_deliveries: routine(purgeMs, ({ db }) => purgeReceived(db)),
  old_outside_events: routine(purgeMs, ({ db }) => purgeEvents(db)),
  old_keyed_answers: routine(purgeMs, ({ db }) => purgeAnswers(db)),
  old_cached_answers: routine(purgeMs, ({ db }) => purgeCachedAnswers(db)),
  old_contents: routine(purgeMs, ({ db }) => purgeContents(db)),
  old_advice: routine(purgeMs, ({ db }) => purgeAdviceAnswers(db)),
  old_results: routine(purgeMs, ({ db }) => purgeResults(db)),
  old_instances: { everyMs: purgeMs, work: ({ db }) => purgeInstances(db) },
  old_load_times: { everyMs: purgeMs, work: ({ db }) => purgeLoadTimes(db) },
  old_hosts: { everyMs: purgeMs, work: ({ db }) => purgeHosts(db) },
  abandoned_uploads: { everyMs: purgeMs, work: ({ parts }) => parts.media.sweep(abandonedMs) },
  parts_of_tables: routine(60 * minuteMs, ({ db }) => addParts(db)),
  secrets_under_former_keys: { everyMs: 10_000, work: ({ parts }) => parts.resealSecrets() },
  backfills: routine(0, ({ parts }) => parts.fillBack()),
  starts_of_schedules: routine(5_000, ({ parts }) => parts.watchStarts()),
  erasures: routine(1_000, ({ parts }, isStopping) => parts.eraseProjects(isStopping)),
  retention: routine(purgeMs, ({ parts }, isStopping) => parts.purgeOld(isStopping)),
};

/** The duties, ready to run on these connections and parts. */
export function createDuties(ctx: DeliveryCtx, parts: DutyParts): Duties {
  const resources = { ctx, db: ctx.db, parts };
  return Object.fromEntries(
    Object.entries(duties).map(([name, { work, restMs, ...pace }]) => [
      name,
      {
        ...pace,
        restMs: restMs && ((tookMs) => restMs(resources, tookMs)),
        work: (isStopping) => work(resources, isStopping),
      } satisfies Duty,
    ]),
  );
}
