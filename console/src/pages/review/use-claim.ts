import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import type { Review } from '../../../../src/contracts/review.ts';
import { claimReview } from '../../api/reviews.ts';

/** Shorter than a claim lasts. */
const prolongMs = 60_000;

export interface ReviewClaim {
  /** Of the review as it is claimed. */
  readonly version: number;
  readonly error: Error | null;
  /** Until it is, the version that a decision has to name is about to change. */
  readonly isSettled: boolean;
}

/** Claims the review when it is opened, and again while it stays open. */
export function useClaim(review: Review): ReviewClaim {
  const queries = useQueryClient();
  const { review_id } = review;
  const { mutate, error, isSuccess, isError } = useMutation({
    mutationFn: () => claimReview(review_id),
    onSuccess: (claimed) => queries.setQueryData(['review', review_id], claimed),
  });
  useEffect(() => {
    mutate();
    const timer = setInterval(() => mutate(), prolongMs);
    return () => clearInterval(timer);
  }, [mutate]);
  return { version: review.version, error, isSettled: isSuccess || isError };
}
