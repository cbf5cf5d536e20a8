/**
 * Waiting is state: a waiting unit is an entry here. A signal wakes it, or the one timer for the earliest deadline.
 * Signals are repeated until they are accepted, and may arrive before the wait: each version of a review counts once,
 * and an early wake is kept. A ladder waits for its review in the same way.
 */

import { readReviewed, readWoken } from '@capstan/core/received/workflow-messages';
import type { Unit } from '@capstan/core/run/drive';
import type { Wait } from '@capstan/core/run/machine-state';
import { describeAwaited, summarizeWait } from '@capstan/core/workflow-names';
import type { WorkflowSnapshot } from '@capstan/core/workflow-payloads';
import { CancellationScope, sleep } from '@temporalio/workflow';
import { handleSignal } from './run-control.ts';

/** Signals about a review are repeated until they are accepted: each version counts once, in whatever order. */
interface SeenVersions {
  /** Records the version of a signal. */
  see(reviewId: string, version: number): void;
  /** Whether there is a version that has woken no unit. */
  isNews(reviewId: string): boolean;
  /** Marks all versions as used for a wake. */
  take(reviewId: string): void;
  /** The last version that has woken no unit, by review. */
  untaken(): Readonly<Record<string, number>>;
}

function createSeenVersions(before: Readonly<Record<string, number>> = {}): SeenVersions {
  const news = new Map(Object.entries(before));
  const seen = new Set([...news].map(([id, version]) => `${id}/${version}`));
  return {
    see: (id, version) => {
      const name = `${id}/${version}`;
      if (!seen.has(name)) news.set(id, version);
      seen.add(name);
    },
    isNews: (id) => news.has(id),
    take: (id) => void news.delete(id),
    untaken: () => Object.fromEntries(news),
  };
}

// One timer for many deadlines, set to the earliest.

interface EarliestTimer {
  /** Makes the timer fire at `until` or earlier; null = never. @param summary the timer's name in Temporal */
  arm(until: number | null, summary: string): void;
  stop(): void;
}

/** @param fire may come early, for a deadline that no longer has an entry; remaining entries then arm it again */
function createEarliestTimer(scope: CancellationScope, fire: () => void): EarliestTimer {
  let armed: { readonly at: number; readonly scope: CancellationScope } | null = null;
  const stop = (): void => {
    armed?.scope.cancel();
    armed = null;
  };
  return {
    arm: (until, summary) => {
      if (until === null || (armed !== null && armed.at <= until)) return;
      armed?.scope.cancel();
      const own = new CancellationScope({ cancellable: true, parent: scope });
      own
        .run(() => sleep(Math.max(1, until - Date.now()), { summary }))
        .then(
          () => {
            armed = null;
            fire();
          },
          () => undefined,
        );
      armed = { at: until, scope: own };
    },
    stop,
  };
}

export interface StepWaits {
  listen(unit: Unit, wait: Wait): void;
  /** Removes the unit's wait. */
  forget(unit: Unit): void;
  /** The state that the next history needs. */
  snapshot(): Pick<WorkflowSnapshot, 'early_wakes' | 'seen_versions'>;
}

interface WaitDependencies {
  /** Scope of the timer. */
  readonly scope: CancellationScope;
  readonly snapshot: Pick<WorkflowSnapshot, 'early_wakes' | 'seen_versions'> | undefined;
  /** Whether a wake is useful to a unit that does not wait here. */
  readonly hearsWake: (stepId: string, item: number) => boolean;
  readonly wake: (unit: Unit) => void;
}

interface WaitEntry {
  readonly name: string;
  readonly unit: Unit;
  readonly until: number | null;
  readonly reviewId: string | null;
  readonly summary: string;
}

function nameOf(stepId: string, item: number): string {
  return `${stepId}/${item}`;
}

/** Call once per workflow: it registers the signal handlers. */
export function createStepWaits({ scope, snapshot, hearsWake, wake }: WaitDependencies): StepWaits {
  const entries = new Map<string, WaitEntry>();
  const early = new Set<string>(snapshot?.early_wakes);
  const reviews = createSeenVersions(snapshot?.seen_versions);
  const timer = createEarliestTimer(scope, () => {
    for (const entry of overdueOf(entries)) if (entries.has(entry.name)) end(entry);
    for (const { until, summary } of entries.values()) timer.arm(until, summary);
  });
  const end = (entry: WaitEntry): void => {
    const { name, unit, reviewId } = entry;
    entries.delete(name);
    early.delete(name);
    if (reviewId !== null) reviews.take(reviewId);
    if (entries.size === 0) timer.stop();
    wake(unit);
  };
  takeSignals(entries, reviews, {
    end,
    early: (stepId, item) => {
      if (hearsWake(stepId, item)) early.add(nameOf(stepId, item));
    },
  });
  return {
    listen: (unit, wait) => {
      const { until, ref } = wait;
      const name = nameOf(unit.step.id, unit.item);
      const summary = summarizeWait(unit, wait);
      const entry: WaitEntry = { name, unit, until, reviewId: reviewOf(ref), summary };
      entries.set(name, entry);
      if (isDecided(entry, reviews) || early.has(name)) end(entry);
      else timer.arm(until, summary);
    },
    forget: ({ step, item }) => {
      entries.delete(nameOf(step.id, item));
      if (entries.size === 0) timer.stop();
    },
    snapshot: () => ({ early_wakes: [...early], seen_versions: reviews.untaken() }),
  };
}

interface SignalTakers {
  readonly end: (entry: WaitEntry) => void;
  /** Handles a wake for a unit that does not wait. */
  readonly early: (stepId: string, item: number) => void;
}

function takeSignals(
  entries: ReadonlyMap<string, WaitEntry>,
  reviews: SeenVersions,
  { end, early }: SignalTakers,
): void {
  handleSignal('reviewed', readReviewed, ({ review_id, version }) => {
    reviews.see(review_id, version);
    for (const entry of [...entries.values()]) {
      if (entry.reviewId === review_id && isDecided(entry, reviews)) end(entry);
    }
  });
  handleSignal('woken', readWoken, ({ step_id, item }) => {
    const entry = entries.get(nameOf(step_id, item));
    if (entry === undefined) early(step_id, item);
    else end(entry);
  });
}

function isDecided({ reviewId }: WaitEntry, reviews: SeenVersions): boolean {
  return reviewId !== null && reviews.isNews(reviewId);
}

/** The entries past their deadline, earliest first. */
function overdueOf(entries: ReadonlyMap<string, WaitEntry>): WaitEntry[] {
  const now = Date.now();
  const untilOf = ({ until }: WaitEntry): number => until ?? Number.POSITIVE_INFINITY;
  return [...entries.values()]
    .filter((entry) => untilOf(entry) <= now)
    .sort((a, b) => untilOf(a) - untilOf(b));
}

function reviewOf(ref: Wait['ref']): string | null {
  const { review_id } = (ref ?? {}) as { readonly review_id?: string };
  return review_id ?? null;
}

// Waiting for people is state: an awaited review is an entry here, woken by the signal `reviewed` or by its due time.
// The signal is repeated until it is accepted and may arrive before the wait, so each version counts once.

interface ReviewWaits {
  /** Resolves when the review has ended, or should have; rejects when the wait is cancelled. */
  over(review: { readonly review_id: string; readonly due_at: string }): Promise<void>;
}

/** The expiry comes as a signal from outside; this covers the case that it never arrives. */
export const expiryGraceMs = 60_000;

/** Call once per workflow: it registers the signal handler. */
export function createReviewWaits(): ReviewWaits {
  const reviews = createSeenVersions();
  const waiting = new Map<string, () => void>();

  handleSignal('reviewed', readReviewed, ({ review_id, version }) => {
    reviews.see(review_id, version);
    if (reviews.isNews(review_id)) waiting.get(review_id)?.();
  });

  return {
    over: ({ review_id, due_at }) =>
      new Promise((resolve, reject) => {
        const timer = new CancellationScope();
        const wake = (): void => {
          reviews.take(review_id);
          waiting.delete(review_id);
          resolve();
          timer.cancel();
        };
        if (reviews.isNews(review_id)) return wake();
        waiting.set(review_id, wake);
        timer
          .run(() =>
            sleep(Math.max(0, Date.parse(due_at) - Date.now()) + expiryGraceMs, {
              summary: `waits for ${describeAwaited({ awaiting: 'review', ref: { review_id } })}`,
            }),
          )
          .then(() => waiting.get(review_id)?.(), reject);
      }),
  };
}
