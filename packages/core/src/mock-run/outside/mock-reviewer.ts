/** The reviewers of a local run: each review gets the next decision from the mocks, or none. */
import type { StepDefinition } from '../../contracts/pipeline.ts';
import type { ReviewKind, ReviewPayload } from '../../contracts/review.ts';
import { parseDuration } from '../../duration.ts';
import { actionsOf } from '../../review-actions.ts';
import { type MockDecision, MockFault, type Mocks } from '../mocks.ts';
import type { VirtualTime } from '../virtual-time.ts';

interface AskedAbout {
  readonly kind: ReviewKind;
  /** Null: the review is about the budget of the run. */
  readonly step: string | null;
}

export interface MockReview extends AskedAbout {
  readonly review_id: string;
  /** Unix time, ms; null = never. */
  dueAt: number | null;
  /** 1 = the first time. */
  round: number;
  decision: MockDecision | null;
}

/** A review with a decision. */
export type DecidedReview = MockReview & { readonly decision: MockDecision };

export interface MockReviewer {
  /** @param decided called on a decision */
  open(subject: AskedAbout, dueMs: number | null, decided: () => void): MockReview;
  /** Opens the same review again. */
  reopen(review: MockReview, dueMs: number, decided: () => void): void;
}

export function createMockReviewer(
  { reviews = {}, budget_reviews = [] }: Pick<Mocks, 'reviews' | 'budget_reviews'>,
  time: VirtualTime,
): MockReviewer {
  const left = new Map(Object.entries(reviews).map(([step, decisions]) => [step, [...decisions]]));
  const budgetLeft = [...budget_reviews];
  let count = 0;

  const ask = (review: MockReview, dueMs: number | null, decided: () => void): void => {
    review.dueAt = dueMs === null ? null : time.now() + dueMs;
    const next = (review.step === null ? budgetLeft : left.get(review.step))?.shift();
    if (next === undefined) return;
    time.at(time.now() + parseDuration(next.after ?? '0s'), () => {
      if (review.dueAt !== null && time.now() > review.dueAt) return;
      review.decision = next;
      decided();
    });
  };

  return {
    open: (subject, dueMs, decided) => {
      count += 1;
      const review: MockReview = {
        ...subject,
        review_id: `review_${count}`,
        dueAt: null,
        round: 1,
        decision: null,
      };
      ask(review, dueMs, decided);
      return review;
    },
    reopen: (review, dueMs, decided) => {
      review.round += 1;
      review.decision = null;
      ask(review, dueMs, decided);
    },
  };
}

/** Whether the review has a decision or has expired. */
export function isOver({ decision, dueAt }: MockReview, now: number): boolean {
  return decision !== null || (dueAt !== null && now >= dueAt);
}

/** @throws MockFault for a decision that the API would refuse; advice needs a model, which mocks do not have */
export function requireAction(
  { id, optional = false, allow_output = false }: StepDefinition,
  { kind, decision: { action } }: DecidedReview,
  proposals: ReviewPayload['proposals'] = [],
): void {
  const payload = { proposals, allow_output, optional };
  const matter = { kind, run_id: '', subject: null, escalation_id: null, payload };
  const possible = actionsOf(matter).filter((one) => one !== 'advise');
  if (possible.includes(action)) return;
  const message = `the review of step ${id} does not take ${action}; possible are ${possible.join(', ')}`;
  throw new MockFault(message);
}
