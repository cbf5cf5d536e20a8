import type { ReviewSummary } from '@capstan/core/contracts/review';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { decideReview } from '../../api/reviews.ts';
import { titleOf } from '../../review/review-words.ts';
import { giveNotice } from '../../shared/notice.ts';
import { type DecidedMany, describeEnd, type RowDecision, toRowDecision } from './table-model.ts';

const parallel = 4;

type RefusedReviews = { title: string; reason: string }[];

/** Sends decisions, a few at a time. Each is accepted or refused on its own. */
async function sendAll(
  rows: readonly RowDecision[],
  onSent: (review: ReviewSummary, isAccepted: boolean) => void,
): Promise<DecidedMany> {
  const left = [...rows];
  const refused: RefusedReviews = [];
  const work = async (): Promise<void> => {
    for (let row = left.shift(); row !== undefined; row = left.shift()) {
      const { review, decision } = toRowDecision(row);
      const error = await decideReview(review.review_id, review.version, decision).then(
        () => null,
        (reason: Error) => reason,
      );
      if (error !== null) refused.push({ title: titleOf(review), reason: error.message });
      onSent(review, error === null);
    }
  };
  await Promise.all(Array.from({ length: parallel }, work));
  return { done: rows.length - refused.length, refused };
}

export interface Deciding {
  /** Null while nothing is sent. */
  readonly progress: { readonly sent: number; readonly all: number } | null;
  /** Ids of reviews that were decided here and may still be in the list. */
  readonly decided: ReadonlySet<string>;
  readonly decide: (rows: readonly RowDecision[]) => void;
}

/** @param reviews of the page, for the one that comes next */
export function useDeciding(reviews: readonly ReviewSummary[]): Deciding {
  const queries = useQueryClient();
  const [progress, setProgress] = useState<Deciding['progress']>(null);
  const [decided, setDecided] = useState<ReadonlySet<string>>(new Set());
  const decide = (rows: readonly RowDecision[]): void => {
    if (rows.length === 0 || progress !== null) return;
    let sent = 0;
    const gone = new Set(decided);
    setProgress({ sent, all: rows.length });
    void sendAll(rows, ({ review_id }, isAccepted) => {
      sent += 1;
      if (isAccepted) gone.add(review_id);
      setProgress({ sent, all: rows.length });
    }).then((end) => {
      setProgress(null);
      setDecided(gone);
      const next = reviews.find(({ review_id }) => !gone.has(review_id));
      giveNotice(describeEnd(end, next && titleOf(next)));
      return queries.invalidateQueries({ queryKey: ['reviews'] });
    });
  };
  return { progress, decided, decide };
}
