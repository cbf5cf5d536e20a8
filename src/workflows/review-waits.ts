/**
 * Waiting for people is state: a review that is waited for is an entry here, woken by the signal `reviewed` or by its
 * due time. The signal is repeated until it is taken and may come before anybody waits, so each version counts once.
 */
import { CancellationScope, defineSignal, setHandler, sleep } from '@temporalio/workflow';
import type { ReviewedSignal } from '../core/workflow-payloads/escalate-input.ts';

const reviewedSignal = defineSignal<[ReviewedSignal]>('reviewed');

export interface ReviewWaits {
  /** Resolves when the review is over, or should be; rejects when the wait is cancelled. */
  over(review: { readonly review_id: string; readonly due_at: string }): Promise<void>;
}

/** The expiry is somebody else's work, and told by the signal; this is for when that never comes. */
export const expiryGraceMs = 60_000;

interface Entry {
  /** Highest version that was told. */
  told: number;
  /** Highest version that woke somebody. */
  taken: number;
  wake: (() => void) | null;
}

/** Once in a workflow: it takes the signal. */
export function createReviewWaits(): ReviewWaits {
  const entries = new Map<string, Entry>();
  const entryOf = (reviewId: string): Entry => {
    const known = entries.get(reviewId);
    if (known !== undefined) return known;
    const entry: Entry = { told: 0, taken: 0, wake: null };
    entries.set(reviewId, entry);
    return entry;
  };

  setHandler(reviewedSignal, ({ review_id, version }) => {
    const entry = entryOf(review_id);
    entry.told = Math.max(entry.told, version);
    if (entry.told > entry.taken) entry.wake?.();
  });

  return {
    over: ({ review_id, due_at }) => {
      const entry = entryOf(review_id);
      return new Promise((resolve, reject) => {
        const timer = new CancellationScope();
        entry.wake = () => {
          entry.taken = entry.told;
          entry.wake = null;
          resolve();
          timer.cancel();
        };
        if (entry.told > entry.taken) return entry.wake();
        timer
          .run(() => sleep(Math.max(0, Date.parse(due_at) - Date.now()) + expiryGraceMs))
          .then(() => entry.wake?.(), reject);
      });
    },
  };
}
