/** What maintenance does, and how often. */

import { purgeSessions } from '../../db/access/session.ts';
import { loseExpiredAttempts } from '../../db/attempt/attempt.ts';
import { purgeResults } from '../../db/cache/cache-list.ts';
import type { Db } from '../../db/connect.ts';
import { purgeAdviceAnswers } from '../../db/escalation/advice-answer.ts';
import { cancelOrphanedEscalations } from '../../db/escalation/escalation.ts';
import { purgeAnswers } from '../../db/idempotency/idempotency.ts';
import { purgeInstances } from '../../db/instance/instance-purge.ts';
import { addParts } from '../../db/parts/keep-parts.ts';
import { cancelOrphanedReviews } from '../../db/review/review-delivery.ts';
import { purgeDeliveries } from '../../db/webhook/webhook-delivery.ts';
import type { EscalationDelivery } from '../escalation/ladder/deliver-escalation.ts';
import type { MediaLibrary } from '../media/media-library.ts';
import type { BudgetKeeper } from '../money/budget-keeper.ts';
import type { RegistryService } from '../registry/registry-service.ts';
import type { ReviewDelivery } from '../reviews/deliver-review.ts';
import type { RunDelivery } from '../runs/deliver-run.ts';
import type { DueWorkDuty } from '../runs/due-work.ts';
import type { ScheduleDelivery } from '../schedules/deliver-schedule.ts';
import type { WebhookDuty } from '../webhooks/deliver-webhooks.ts';

export interface Duty {
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

export interface DutyDependencies {
  readonly db: Db;
  readonly delivery: Pick<RunDelivery, 'deliverOverdue'>;
  readonly dueWork: DueWorkDuty;
  readonly reconcileRuns: () => Promise<number>;
  readonly restartForgottenRuns: () => Promise<number>;
  readonly restartForgottenLadders: () => Promise<number>;
  readonly restartForgottenSchedules: () => Promise<number>;
  readonly watchCapabilities: () => Promise<number>;
  readonly escalations: Pick<EscalationDelivery, 'deliverOverdue'>;
  readonly reviews: Pick<ReviewDelivery, 'deliverOverdue' | 'expireDue'>;
  readonly schedules: Pick<ScheduleDelivery, 'deliverOverdue'>;
  readonly registry: Pick<RegistryService, 'probeDue'>;
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
/** An upload on which nothing moves for a minute is cut off, so this old is nobody's. */
const abandonedMs = 60 * minuteMs;

/** Full rounds follow one another at once: after an outage of ours everything is suspect. */
async function probeWhatIsDue(
  { registry }: Pick<DutyDependencies, 'registry'>,
  isStopping: () => boolean,
): Promise<number> {
  let probed = 0;
  let round: number;
  do {
    round = await registry.probeDue(probesAtOnce);
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

async function beginRecheck({ recheckPersons }: Pick<DutyDependencies, 'recheckPersons'>): Promise<number> {
  recheckPersons?.();
  return 0;
}

/** Done as often as the rounds of maintenance, or more seldom. */
export function createDuties(dependencies: DutyDependencies): readonly Duty[] {
  const { db, delivery, escalations, reviews, schedules, budgets } = dependencies;
  return [
    { name: 'deliveries', everyMs: 0, work: () => delivery.deliverOverdue() },
    { name: 'escalations', everyMs: 0, work: () => escalations.deliverOverdue() },
    { name: 'reviews', everyMs: 0, work: () => reviews.deliverOverdue() },
    { name: 'schedules', everyMs: 0, work: () => schedules.deliverOverdue() },
    { name: 'due reviews', everyMs: 0, work: () => reviews.expireDue() },
    repair('leases', 0, () => loseExpiredAttempts(db)),
    routine('probes', 0, (isStopping) => probeWhatIsDue(dependencies, isStopping)),
    { name: 'budget marks', everyMs: 0, work: () => budgets.announceMarks().then(() => 0) },
    repair('lost runs', 10_000, () => dependencies.reconcileRuns()),
    repair('forgotten runs', 5 * minuteMs, () => dependencies.restartForgottenRuns()),
    repair('forgotten ladders', 5 * minuteMs, () => dependencies.restartForgottenLadders()),
    repair('forgotten schedules', 5 * minuteMs, () => dependencies.restartForgottenSchedules()),
    { ...repair('budgets', minuteMs, () => budgets.reconcile()), rests: 20 },
    { name: 'old answers', everyMs: purgeMs, work: () => purgeAnswers(db) },
    routine('people', 1_000, async () => beginRecheck(dependencies)),
    routine('old sessions', purgeMs, () => purgeSessions(db)),
    routine('webhooks', 0, () => dependencies.webhooks.deliverDue()),
    routine('old webhook deliveries', purgeMs, () => purgeDeliveries(db)),
    repair('orphaned escalations', minuteMs, () => cancelOrphanedEscalations(db)),
    repair('orphaned reviews', minuteMs, () => cancelOrphanedReviews(db)),
    { name: 'old advice', everyMs: purgeMs, work: () => purgeAdviceAnswers(db) },
    routine('old results', purgeMs, () => purgeResults(db)),
    { name: 'abandoned uploads', everyMs: purgeMs, work: () => dependencies.media.sweep(abandonedMs) },
    { name: 'purge', everyMs: purgeMs, work: () => purgeInstances(db) },
    routine('parts of tables', 60 * minuteMs, () => addParts(db)),
    routine('erasures', 1_000, dependencies.eraseProjects),
    routine('retention', purgeMs, dependencies.purgeOld),
  ];
}

/** Somebody waits for it: done on a clock of its own. */
export function createPromptDuties({
  dueWork,
  watchCapabilities,
}: Pick<DutyDependencies, 'dueWork' | 'watchCapabilities'>): readonly Duty[] {
  return [
    routine('due work', promptMs, () => dueWork.attend()),
    routine('capabilities', 2 * promptMs, () => watchCapabilities()),
  ];
}
