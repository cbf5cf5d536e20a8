import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { decidedReviewsQuery, reviewRowsQuery } from '../../api/reviews.ts';
import { sessionQuery } from '../../api/session.ts';
import { usePolling } from '../../live/live.tsx';
import { ReviewLine } from '../../review/review-line.tsx';
import { kindShort } from '../../review/review-words.ts';
import { reviewKinds } from '../../searches.ts';
import { EmptyState, fieldClass, PageHead, Panel } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { ReviewTables } from './review-tables.tsx';

/** By due date, the most urgent first. `j` and `k` move, `s` chooses, `a` decides, Enter opens. */
export function ReviewsPage(): ReactElement {
  const { kind, mine } = useSearch({ from: '/reviews' });
  const navigate = useNavigate({ from: '/reviews' });
  const session = useQuery(sessionQuery);
  const assignee = mine ? session.data?.key_id : undefined;
  const query = useQuery({ ...reviewRowsQuery({ kind, assignee }), refetchInterval: usePolling() });
  return (
    <>
      <PageHead
        title="Reviews"
        about="Items that need a human decision. Answer in a row, or open one to see everything that was tried."
        actions={
          <>
            <label className="flex items-center gap-1.5 text-sm">
              <input
                type="checkbox"
                checked={mine === true}
                onChange={() => void navigate({ search: { kind, mine: mine ? undefined : true } })}
              />
              Assigned to me
            </label>
            <select
              aria-label="Type"
              className={fieldClass}
              value={kind ?? ''}
              onChange={({ target }) =>
                void navigate({ search: { mine, kind: reviewKinds.find((one) => one === target.value) } })
              }
            >
              <option value="">All types</option>
              {reviewKinds.map((one) => (
                <option key={one} value={one}>
                  {kindShort[one]}
                </option>
              ))}
            </select>
          </>
        }
      />
      <QueryView query={query}>
        {(reviews) => (reviews.length === 0 ? <NothingOpen /> : <ReviewTables reviews={reviews} />)}
      </QueryView>
      <LastDecided />
    </>
  );
}

function NothingOpen(): ReactElement {
  return (
    <Panel isTight>
      <EmptyState title="No open reviews">
        Rules, skills and models correct what they can. What is left to a person, and questions that a
        pipeline asks, stand here with everything that was tried.
      </EmptyState>
    </Panel>
  );
}

function LastDecided(): ReactElement | null {
  const items = useQuery(decidedReviewsQuery()).data?.items ?? [];
  if (items.length === 0) return null;
  return (
    <Panel title="Decided" isTight className="mt-4">
      <ul className="divide-y divide-line">
        {items.slice(0, 10).map((review) => (
          <li key={review.review_id}>
            <ReviewLine review={review} />
          </li>
        ))}
      </ul>
    </Panel>
  );
}
