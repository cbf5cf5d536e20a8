/**
 * Waiting is state: a unit that waits is an entry here, woken by a signal or by the one timer, that of the earliest
 * deadline. Signals are repeated until they are taken, and may come before anybody waits: what was said of a review counts
 * once per version, a wake that comes early is kept.
 */
import { type CancellationScope, defineSignal, setHandler } from '@temporalio/workflow';
import type { Unit } from '../core/run/drive.ts';
import type { Wait } from '../core/run/wait.ts';
import type { ReviewedSignal } from '../core/workflow-payloads/escalate-input.ts';
import type { WokenSignal, WorkflowSnapshot } from '../core/workflow-payloads/run-input.ts';
import { summarizeWait } from '../core/workflow-payloads/summary.ts';
import { createEarliestTimer } from './earliest-timer.ts';
import { createSeenVersions, type SeenVersions } from './seen-versions.ts';

const reviewedSignal = defineSignal<[ReviewedSignal]>('reviewed');
const wokenSignal = defineSignal<[WokenSignal]>('woken');

export interface StepWaits {
  listen(unit: Unit, wait: Wait): void;
  /** Nobody waits there any more. */
  forget(unit: Unit): void;
  /** What the next history has to know. */
  snapshot(): Pick<WorkflowSnapshot, 'early_wakes' | 'seen_versions'>;
}

export interface WaitDependencies {
  /** Scope of the timer. */
  readonly scope: CancellationScope;
  readonly snapshot: Pick<WorkflowSnapshot, 'early_wakes' | 'seen_versions'> | undefined;
  /** Whether a wake is of use to the unit although it does not wait here. */
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

/** Once in a workflow: it takes the signals. */
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
  /** A wake has come and nobody waits for it. */
  readonly early: (stepId: string, item: number) => void;
}

function takeSignals(
  entries: ReadonlyMap<string, WaitEntry>,
  reviews: SeenVersions,
  { end, early }: SignalTakers,
): void {
  setHandler(reviewedSignal, ({ review_id, version }) => {
    reviews.see(review_id, version);
    for (const entry of [...entries.values()]) {
      if (entry.reviewId === review_id && isDecided(entry, reviews)) end(entry);
    }
  });
  setHandler(wokenSignal, ({ step_id, item }) => {
    const entry = entries.get(nameOf(step_id, item));
    if (entry === undefined) early(step_id, item);
    else end(entry);
  });
}

function isDecided({ reviewId }: WaitEntry, reviews: SeenVersions): boolean {
  return reviewId !== null && reviews.isNews(reviewId);
}

/** The entries whose time is over, the first deadline first. */
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
