/** Questions about a budget that somebody answered without looking at them: by giving it another limit. */
import type { ReviewDecision } from '../../contracts/review.ts';
import type { Db } from '../connect.ts';

/**
 * Only ladders wait for the answer: the steps that wait for the budget are woken. A ladder's question stays open under a
 * limit that is no higher than the one that it shows.
 *
 * @param limitUsd null = none
 * @returns ids of those that were open
 */
export async function resolveBudgetReviews(
  trx: Db,
  subject: string,
  {
    by,
    decision,
    limitUsd,
  }: { readonly by: string; readonly decision: ReviewDecision; readonly limitUsd: number | null },
): Promise<readonly { readonly review_id: string; readonly project_id: string }[]> {
  const { rows } = await trx.raw<{ rows: { review_id: string; project_id: string }[] }>(
    `with open as (
       select review_id from review
       where kind = 'budget' and subject = :subject and state in ('open', 'claimed')
         and (escalation_id is null or :limitUsd::numeric is null
           or :limitUsd::numeric > (payload->'details'->>'limit_usd')::numeric)
       order by review_id for update
     )
     update review r set state = 'resolved', decision = :decision, decided_by = :by, decided_at = clock_timestamp(),
       version = r.version + 1, claim_expires_at = null,
       delivered_at = case when r.escalation_id is null then clock_timestamp() end,
       assignee = case when r.assignee = :by then r.assignee end
     from open where r.review_id = open.review_id returning r.review_id, r.project_id`,
    { subject, by, limitUsd, decision: JSON.stringify(decision) },
  );
  return rows;
}
