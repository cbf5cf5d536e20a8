import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { openReviewsQuery } from '../../api/reviews.ts';
import { ReviewLine } from '../../review/review-line.tsx';
import { linkClass, Panel } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';

const mostShown = 6;

export function WaitingForMe(): ReactElement {
  const query = useQuery(openReviewsQuery());
  return (
    <Panel
      title="Needs your attention"
      isTight
      actions={
        <Link to="/reviews" className={`${linkClass} text-sm`}>
          All reviews
        </Link>
      }
    >
      <QueryView query={query}>
        {(reviews) =>
          reviews.length === 0 ? (
            <p className="px-4 py-5 text-sm text-muted">
              Nothing. When a step cannot be corrected by rules, skills and models, or money runs out, the
              question is asked here.
            </p>
          ) : (
            <ul className="divide-y divide-line">
              {reviews.slice(0, mostShown).map((review) => (
                <li key={review.review_id}>
                  <ReviewLine review={review} />
                </li>
              ))}
            </ul>
          )
        }
      </QueryView>
    </Panel>
  );
}
