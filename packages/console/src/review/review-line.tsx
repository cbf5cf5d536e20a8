import type { ReviewSummary } from '@capstan/core/contracts/review';
import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { Ago } from '../shared/ago.tsx';
import { Icon } from '../shared/icon.tsx';
import { kindShort, titleOf } from './review-words.ts';

export interface ReviewLineProps {
  readonly review: ReviewSummary;
  readonly isChosen?: boolean;
}

/** A review in a list: question, location, due date. */
export function ReviewLine({ review, isChosen = false }: ReviewLineProps): ReactElement {
  const { review_id, kind, pipeline, run_id, step_id, assignee, due_at, state } = review;
  const isLate = Date.parse(due_at) < Date.now();
  return (
    <Link
      to="/reviews/$reviewId"
      params={{ reviewId: review_id }}
      className={`flex gap-3 px-4 py-2.5 text-sm hover:bg-sunken/60 ${isChosen ? 'bg-accent-soft' : ''}`}
    >
      <Icon name="user-round" className="mt-0.5 text-person" />
      <span className="min-w-0 flex-1">
        <span className="line-clamp-2 break-words font-medium">{titleOf(review)}</span>
        <span className="mt-0.5 flex flex-wrap gap-x-3 text-xs text-muted">
          <span>{kindShort[kind]}</span>
          {pipeline === undefined ? null : <span>{pipeline}</span>}
          {run_id === undefined ? null : <span title={run_id}>run …{run_id.slice(-8)}</span>}
          {step_id === undefined ? null : <span>step {step_id}</span>}
          {state === 'claimed' ? (
            <span className="text-running">claimed by {assignee ?? 'someone'}</span>
          ) : null}
        </span>
      </span>
      <span className={`shrink-0 text-xs ${isLate ? 'text-failed' : 'text-muted'}`}>
        due <Ago at={due_at} />
      </span>
    </Link>
  );
}
