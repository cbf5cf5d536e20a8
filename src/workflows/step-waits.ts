/**
 * Waiting is state: a unit that waits is an entry here, woken by a signal or by the one timer, that of the earliest
 * deadline. Signals are repeated until they are taken, and may come before anybody waits: what a review was told counts
 * once per version, a wake that comes early is kept.
 */
import { CancellationScope, defineSignal, setHandler, sleep } from '@temporalio/workflow';
import type { Unit } from '../core/run/drive.ts';
import type { Wait } from '../core/run/wait.ts';
import type { ReviewedSignal } from '../core/workflow-payloads/escalate-input.ts';
import type { CarriedWorkflow, WokenSignal } from '../core/workflow-payloads/run-input.ts';

const reviewedSignal = defineSignal<[ReviewedSignal]>('reviewed');
const wokenSignal = defineSignal<[WokenSignal]>('woken');

export interface StepWaits {
  listen(unit: Unit, wait: Wait): void;
  /** Nobody waits there any more. */
  forget(unit: Unit): void;
  /** For the next history. */
  carry(): Pick<CarriedWorkflow, 'early' | 'told'>;
}

interface Entry {
  readonly unit: Unit;
  readonly until: number | null;
  readonly reviewId: string | null;
}

export interface WaitDependencies {
  /** Scope of the timer. */
  readonly scope: CancellationScope;
  readonly carried: Pick<CarriedWorkflow, 'early' | 'told'> | undefined;
  /** Whether the unit is at work, and may be about to wait. */
  readonly isBusy: (stepId: string, item: number) => boolean;
  readonly wake: (unit: Unit) => void;
}

function nameOf(stepId: string, item: number): string {
  return `${stepId}/${item}`;
}

/** Once in a workflow: it takes the signals. */
export function createStepWaits({ scope, carried, isBusy, wake }: WaitDependencies): StepWaits {
  const entries = new Map<string, Entry>();
  const early = new Set<string>(carried?.early);
  const told = new Map<string, number>(Object.entries(carried?.told ?? {}));
  const taken = new Map<string, number>();
  let timer: { readonly at: number; readonly scope: CancellationScope } | null = null;

  const isTold = ({ reviewId }: Entry): boolean =>
    reviewId !== null && (told.get(reviewId) ?? 0) > (taken.get(reviewId) ?? 0);

  const end = (name: string, entry: Entry): void => {
    entries.delete(name);
    early.delete(name);
    if (entry.reviewId !== null) taken.set(entry.reviewId, told.get(entry.reviewId) ?? 0);
    if (entries.size === 0) stopTimer();
    wake(entry.unit);
  };

  const stopTimer = (): void => {
    timer?.scope.cancel();
    timer = null;
  };

  const endOverdue = (): void => {
    const now = Date.now();
    const overdue = [...entries].flatMap(([name, entry]) =>
      entry.until !== null && entry.until <= now ? [{ name, entry, until: entry.until }] : [],
    );
    for (const { name, entry } of overdue.sort((a, b) => a.until - b.until)) {
      if (entries.has(name)) end(name, entry);
    }
    for (const { until } of entries.values()) arm(until);
  };

  const startTimer = (until: number, fire: () => void): CancellationScope => {
    const own = new CancellationScope({ cancellable: true, parent: scope });
    own.run(() => sleep(Math.max(1, until - Date.now()))).then(fire, () => undefined);
    return own;
  };

  /** A timer that is early fires for nothing and is set again; one that would be late is replaced. */
  const arm = (until: number | null): void => {
    if (until === null || (timer !== null && timer.at <= until)) return;
    timer?.scope.cancel();
    const own = startTimer(until, () => {
      timer = null;
      endOverdue();
    });
    timer = { at: until, scope: own };
  };

  setHandler(reviewedSignal, ({ review_id, version }) => {
    told.set(review_id, Math.max(told.get(review_id) ?? 0, version));
    for (const [name, entry] of [...entries]) {
      if (entry.reviewId === review_id && isTold(entry)) end(name, entry);
    }
  });
  setHandler(wokenSignal, ({ step_id, item }) => {
    const name = nameOf(step_id, item);
    const entry = entries.get(name);
    if (entry !== undefined) end(name, entry);
    else if (isBusy(step_id, item)) early.add(name);
  });

  return {
    listen: (unit, { until, ref }) => {
      const name = nameOf(unit.step.id, unit.item);
      const entry: Entry = { unit, until, reviewId: reviewOf(ref) };
      entries.set(name, entry);
      if (isTold(entry) || early.has(name)) end(name, entry);
      else arm(until);
    },
    forget: ({ step, item }) => {
      entries.delete(nameOf(step.id, item));
      if (entries.size === 0) stopTimer();
    },
    carry: () => ({
      early: [...early],
      told: Object.fromEntries([...told].filter(([id, version]) => version > (taken.get(id) ?? 0))),
    }),
  };
}

function reviewOf(ref: Wait['ref']): string | null {
  const { review_id } = (ref ?? {}) as { readonly review_id?: string };
  return review_id ?? null;
}
