/**
 * Waiting for people is state: a review that is waited for is an entry here, woken by the signal `reviewed` or by its
 * due time. The signal is repeated until it is taken and may come before anybody waits, so each version counts once.
 */
import { CancellationScope, defineSignal, setHandler, sleep } from '@temporalio/workflow';
import type { ReviewedSignal } from '../core/workflow-payloads/escalate-input.ts';
import { describeAwaited } from '../core/workflow-payloads/summary.ts';
import { createSeenVersions } from './seen-versions.ts';

const reviewedSignal = defineSignal<[ReviewedSignal]>('reviewed');

export interface ReviewWaits {
  /** Resolves when the review is over, or should be; rejects when the wait is cancelled. */
  over(review: { readonly review_id: string; readonly due_at: string }): Promise<void>;
}

/** The expiry is somebody else's work, and comes as the signal; this is for when that never comes. */
export const expiryGraceMs = 60_000;

/** Once in a workflow: it takes the signal. */
export function createReviewWaits(): ReviewWaits {
  const reviews = createSeenVersions();
  const waiting = new Map<string, () => void>();

  setHandler(reviewedSignal, ({ review_id, version }) => {
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
