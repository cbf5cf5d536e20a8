/** The people of a local run: each review gets the next decision that the mocks have for it, or nobody decides. */
import { parseDuration } from '../core/duration.ts';
import type { MockDecision, Mocks } from './mocks.ts';
import type { VirtualTime } from './virtual-time.ts';

export interface MockReview {
  readonly review_id: string;
  /** Unix time, ms; null = never. */
  readonly dueAt: number | null;
  /** 1 = asked for the first time. */
  round: number;
  decision: MockDecision | null;
}

export interface MockReviewer {
  /** @param decided told when somebody decides */
  open(about: 'budget' | { readonly step: string }, dueMs: number | null, decided: () => void): MockReview;
  /** The same question again. */
  reopen(review: MockReview, step: string, decided: () => void): void;
}

export function createMockReviewer(
  { reviews = {}, budget_reviews = [] }: Pick<Mocks, 'reviews' | 'budget_reviews'>,
  time: VirtualTime,
): MockReviewer {
  const left = new Map(Object.entries(reviews).map(([step, decisions]) => [step, [...decisions]]));
  const budgetLeft = [...budget_reviews];
  let count = 0;

  const ask = (review: MockReview, next: MockDecision | undefined, decided: () => void): void => {
    if (next === undefined) return;
    time.at(time.now() + parseDuration(next.after ?? '0s'), () => {
      if (review.dueAt !== null && time.now() > review.dueAt) return;
      review.decision = next;
      decided();
    });
  };

  return {
    open: (about, dueMs, decided) => {
      count += 1;
      const dueAt = dueMs === null ? null : time.now() + dueMs;
      const review: MockReview = { review_id: `review_${count}`, dueAt, round: 1, decision: null };
      ask(review, about === 'budget' ? budgetLeft.shift() : left.get(about.step)?.shift(), decided);
      return review;
    },
    reopen: (review, step, decided) => {
      review.round += 1;
      review.decision = null;
      ask(review, left.get(step)?.shift(), decided);
    },
  };
}
