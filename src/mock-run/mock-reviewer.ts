/** The people of a local run: each review gets the next decision that the mocks have for it, or nobody decides. */
import { parseDuration } from '../core/duration.ts';
import { actionsOf, type ReviewMatter } from '../core/review-actions.ts';
import type { MockDecision, Mocks } from './mocks.ts';
import { MockFault } from './mocks.ts';
import type { VirtualTime } from './virtual-time.ts';

export interface MockReview {
  readonly review_id: string;
  /** Unix time, ms; null = never. */
  dueAt: number | null;
  /** 1 = asked for the first time. */
  round: number;
  decision: MockDecision | null;
}

export interface Reopening {
  readonly step: string;
  readonly dueMs: number;
}

export interface MockReviewer {
  /** @param decided told when somebody decides */
  open(about: 'budget' | { readonly step: string }, dueMs: number | null, decided: () => void): MockReview;
  /** The same question of a step again, with as much time as at first. */
  reopen(review: MockReview, again: Reopening, decided: () => void): void;
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
    reopen: (review, { step, dueMs }, decided) => {
      review.round += 1;
      review.dueAt = time.now() + dueMs;
      review.decision = null;
      ask(review, left.get(step)?.shift(), decided);
    },
  };
}

/** @throws MockFault for a decision that the API would refuse; advice is for models, which mocks do not have */
export function requireAction(stepId: string, matter: ReviewMatter, { action }: MockDecision): void {
  const possible = actionsOf(matter).filter((one) => one !== 'advise');
  if (possible.includes(action)) return;
  const message = `the review of step ${stepId} does not take ${action}; possible are ${possible.join(', ')}`;
  throw new MockFault(message);
}
