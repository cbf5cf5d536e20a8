import type { Review } from '@capstan/core/contracts/review';
import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { kindWords, titleOf } from '../../review/review-words.ts';
import { Ago } from '../../shared/ago.tsx';
import { linkClass } from '../../shared/parts.tsx';
import { StateMark } from '../../shared/state-mark.tsx';
import { useTitle } from '../../shared/title.ts';

export function ReviewHead({ review }: { readonly review: Review }): ReactElement {
  const { run_id, step_id, skill_id, assignee, due_at, state, kind, round } = review;
  const title = titleOf(review);
  useTitle(title);
  return (
    <header className="mb-4">
      <p className="text-xs text-muted">
        <Link to="/reviews" className="hover:underline">
          Reviews
        </Link>{' '}
        / {kindWords[kind]}
      </p>
      <h1 className="mt-0.5 max-w-4xl break-words">{title}</h1>
      <div className="mt-2 flex flex-wrap items-center gap-x-5 gap-y-1 text-sm">
        <StateMark state={state} isFilled />
        {assignee === undefined ? null : <span className="text-muted">by {assignee}</span>}
        <span className="text-muted">
          due <Ago at={due_at} />
        </span>
        {round > 1 ? <span className="text-muted">round {round}</span> : null}
        {run_id === undefined ? null : (
          <Link
            to="/runs/$runId"
            params={{ runId: run_id }}
            search={{ step: step_id, tab: 'ladder' }}
            className={linkClass}
          >
            View step {step_id} in its run
          </Link>
        )}
        {skill_id === undefined ? null : (
          <Link to="/skills/$skillId" params={{ skillId: skill_id }} className={linkClass}>
            View skill
          </Link>
        )}
      </div>
    </header>
  );
}
