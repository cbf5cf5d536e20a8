/** Questions about a budget that somebody answered without looking at them: by giving it another limit. */
import type { ReviewDecision } from '../../contracts/review.ts';
import type { Db } from '../connect.ts';

/** Nobody waits for the answer: what waits for the budget is woken. @returns ids of those that were open */
export async function resolveBudgetReviews(
  trx: Db,
  subject: string,
  { by, decision }: { readonly by: string; readonly decision: ReviewDecision },
): Promise<readonly { readonly review_id: string; readonly project_id: string }[]> {
  const { rows } = await trx.raw<{ rows: { review_id: string; project_id: string }[] }>(
    `with open as (
       select review_id from review
       where kind = 'budget' and subject = :subject and state in ('open', 'claimed') order by review_id for update
     )
     update review r set state = 'resolved', decision = :decision, decided_by = :by, decided_at = clock_timestamp(),
       version = r.version + 1, claim_expires_at = null, delivered_at = clock_timestamp(),
       assignee = case when r.assignee = :by then r.assignee end
     from open where r.review_id = open.review_id returning r.review_id, r.project_id`,
    { subject, by, decision: JSON.stringify(decision) },
  );
  return rows;
}
