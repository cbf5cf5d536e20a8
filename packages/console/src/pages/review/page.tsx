import type { Review, ReviewAction, ReviewSummary } from '@capstan/core/contracts/review';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { type ReactElement, useEffect, useState } from 'react';
import { decideReview, openReviewsQuery, reviewQuery } from '../../api/reviews.ts';
import { useServerAway } from '../../live/live.tsx';
import { useCeilingAdvice } from '../../review/ceiling-hint.tsx';
import { actionWords, titleOf } from '../../review/review-words.ts';
import { useKeys } from '../../shared/keys.ts';
import { giveNotice } from '../../shared/notice.ts';
import { Button } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { Asked } from './asked.tsx';
import { Decided } from './decided.tsx';
import { DecisionForm } from './decision-form.tsx';
import { beginDraft, type DecisionDraft, offeredActions, toDecision, whatIsMissing } from './model.ts';
import { ReviewHead } from './review-head.tsx';
import { Tried } from './tried.tsx';
import { useClaim } from './use-claim.ts';

export function ReviewPage(): ReactElement {
  const { reviewId } = useParams({ from: '/reviews/$reviewId' });
  const query = useQuery(reviewQuery(reviewId));
  return (
    <QueryView query={query}>{(review) => <ReviewOpen key={review.review_id} review={review} />}</QueryView>
  );
}

/** The review after this one, and the one before, by due date. */
function useNeighbours(reviewId: string): { go: (step: 1 | -1) => void; next: ReviewSummary | undefined } {
  const navigate = useNavigate();
  const open = useQuery(openReviewsQuery()).data ?? [];
  const place = open.findIndex(({ review_id }) => review_id === reviewId);
  return {
    next: open[place + 1],
    go: (step) => {
      const next = open[place < 0 ? 0 : place + step];
      if (next === undefined) void navigate({ to: '/reviews', search: {} });
      else void navigate({ to: '/reviews/$reviewId', params: { reviewId: next.review_id } });
    },
  };
}

function placeOf(reviewId: string): string {
  return `capstan.review.${reviewId}`;
}

/** The unsent draft of this tab. It outlasts a lost session and a reload, and a later version of the review. */
function readUnsent({ review_id, actions }: Review): DecisionDraft | null {
  const kept = JSON.parse(sessionStorage.getItem(placeOf(review_id)) ?? 'null') as DecisionDraft | null;
  return kept !== null && actions.includes(kept.action) ? kept : null;
}

function keepUnsent({ review_id }: Review, draft: DecisionDraft): void {
  sessionStorage.setItem(placeOf(review_id), JSON.stringify(draft));
}

function dropUnsent({ review_id }: Review): void {
  sessionStorage.removeItem(placeOf(review_id));
}

function ReviewOpen({ review }: { readonly review: Review }): ReactElement {
  const isOpen = review.state === 'open' || review.state === 'claimed';
  const [written, setWritten] = useState(() => readUnsent(review));
  const [isSent, setSent] = useState(false);
  const write = (draft: DecisionDraft): void => {
    keepUnsent(review, draft);
    setWritten(draft);
  };
  const discard = (): void => {
    dropUnsent(review);
    setWritten(null);
  };
  useEffect(() => {
    if (!isOpen) dropUnsent(review);
  }, [isOpen, review]);
  return (
    <>
      <ReviewHead review={review} />
      {isOpen ? (
        <ToDecide
          review={review}
          draft={written ?? beginDraft(review)}
          onDraft={write}
          onDiscard={written === null ? null : discard}
          onSent={setSent}
        />
      ) : (
        <Decided review={review} unsent={written === null || isSent ? null : toDecision(written, review)} />
      )}
      <Tried review={review} />
    </>
  );
}

interface ToDecideProps {
  readonly review: Review;
  readonly draft: DecisionDraft;
  readonly onDraft: (draft: DecisionDraft) => void;
  /** Null without a draft. */
  readonly onDiscard: (() => void) | null;
  /** Whether the decision is being sent or was accepted; false after a refusal. */
  readonly onSent: (isSent: boolean) => void;
}

function ToDecide({ review, draft, onDraft, onDiscard, onSent }: ToDecideProps): ReactElement {
  const queries = useQueryClient();
  const { go, next } = useNeighbours(review.review_id);
  const claim = useClaim(review);
  const isAway = useServerAway() !== null;
  const decide = useMutation({
    mutationFn: () => decideReview(review.review_id, review.version, toDecision(draft, review)),
    onMutate: () => onSent(true),
    onError: () => onSent(false),
    onSettled: () => queries.invalidateQueries({ queryKey: ['review', review.review_id] }),
    onSuccess: () => {
      claim.forget();
      dropUnsent(review);
      const after = next === undefined ? 'No further review is open.' : `Next: ${titleOf(next)}`;
      giveNotice(`Your decision was sent (${actionWords[draft.action]}): ${titleOf(review)}. ${after}`);
      void queries.invalidateQueries({ queryKey: ['reviews'] });
      go(1);
    },
  });
  const write = (changed: DecisionDraft): void => {
    claim.begin();
    onDraft(changed);
  };
  const choose = (action: ReviewAction): void => {
    if (offeredActions(review).includes(action)) write({ ...draft, action });
  };
  useKeys({
    j: () => go(1),
    k: () => go(-1),
    a: () => choose('approve'),
    e: () => choose('edit'),
    x: () => choose('reject'),
    c: claim.toggle,
  });
  const advice = useCeilingAdvice(review);
  const missing = whatIsMissing(draft, review, advice);
  return (
    <div className="grid items-start gap-4 lg:grid-cols-2">
      <Asked review={review} draft={draft} onDraft={write} />
      <DecisionForm review={review} draft={draft} onDraft={write} advice={advice}>
        {claim.error === null ? null : <ProblemView error={claim.error} />}
        {decide.error === null ? null : <ProblemView error={decide.error} />}
        <div className="flex flex-wrap items-center gap-3 border-t border-line pt-3">
          <Button
            look="primary"
            className="h-9 px-4"
            disabled={isAway || missing !== null || decide.isPending || !claim.isSettled}
            onClick={() => decide.mutate()}
          >
            {decide.isPending ? 'Sending …' : 'Submit'}
          </Button>
          <Button onClick={claim.toggle} disabled={isAway || !claim.isSettled}>
            {claim.isHeld ? 'Release' : 'Claim'}
          </Button>
          {onDiscard === null ? null : <Button onClick={onDiscard}>Discard draft</Button>}
          <span className="text-sm text-muted">{missing ?? ''}</span>
          <Link to="/reviews" className="ml-auto text-sm text-muted hover:underline">
            Back to list
          </Link>
        </div>
      </DecisionForm>
    </div>
  );
}
