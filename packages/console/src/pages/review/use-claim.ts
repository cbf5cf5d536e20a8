import type { Review } from '@capstan/core/contracts/review';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type RefObject, useEffect, useRef } from 'react';
import { claimReview, releaseReview } from '../../api/reviews.ts';

/** Shorter than the duration of a claim. */
const prolongMs = 60_000;

export interface ReviewClaim {
  readonly error: Error | null;
  /** This page holds the claim. */
  readonly isHeld: boolean;
  /** While it is false, the version that a decision has to name is about to change. */
  readonly isSettled: boolean;
  /** Claims the review at the first change; repeated, it does nothing. */
  readonly begin: () => void;
  /** Claims the review, or releases the claim. */
  readonly toggle: () => void;
  /** The review is decided: there is no claim to release. */
  readonly forget: () => void;
}

/** Prolongs a claim while the page is open, and releases it when the page is left. */
function useKeptClaim(reviewId: string, held: RefObject<boolean>, prolong: (() => void) | null): void {
  useEffect(() => {
    if (prolong === null) return;
    const timer = setInterval(prolong, prolongMs);
    return () => clearInterval(timer);
  }, [prolong]);
  useEffect(
    () => () => {
      if (held.current) void giveBack(reviewId);
    },
    [reviewId, held],
  );
}

/** It expires while the server is away. */
function giveBack(reviewId: string): Promise<unknown> {
  return releaseReview(reviewId).catch(() => undefined);
}

/** A claim begins with the first change or by hand, lasts while the page is open, and is released when it is left. */
export function useClaim({ review_id }: Review): ReviewClaim {
  const queries = useQueryClient();
  const held = useRef(false);
  const wasAsked = useRef(false);
  const { mutate, reset, error, isPending, isSuccess } = useMutation({
    mutationFn: () => claimReview(review_id),
    onSuccess: (claimed) => {
      held.current = true;
      queries.setQueryData(['review', review_id], claimed);
    },
  });
  useKeptClaim(review_id, held, isSuccess ? mutate : null);
  const claim = (): void => {
    wasAsked.current = true;
    mutate();
  };
  const release = (): void => {
    held.current = false;
    wasAsked.current = false;
    reset();
    void giveBack(review_id).then(() => queries.invalidateQueries({ queryKey: ['review', review_id] }));
  };
  return {
    error,
    isHeld: isSuccess,
    isSettled: !isPending,
    begin: () => {
      if (!wasAsked.current) claim();
    },
    toggle: isSuccess ? release : claim,
    forget: () => {
      held.current = false;
    },
  };
}
