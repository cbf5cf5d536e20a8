/** Ended reviews that were not delivered to their run or escalation; expired reviews; reviews of ended runs. */
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';
import type { ReviewRow } from './review.ts';

/** The fields that a delivery needs. */
export interface EndedReviewRow
  extends Pick<
    ReviewRow,
    'review_id' | 'project_id' | 'version' | 'round' | 'run_id' | 'step_id' | 'item' | 'escalation_id'
  > {
  readonly state: 'resolved' | 'expired';
}

const columns = 'review_id, project_id, state, version, round, run_id, step_id, item, escalation_id';

export function listUndeliveredReviews(
  db: Db,
  olderThanMs: number,
  limit: number,
): Promise<readonly EndedReviewRow[]> {
  return query<EndedReviewRow>(db).all(
    `select ${columns} from review where state in ('resolved', 'expired') and delivered_at is null
       and decided_at < clock_timestamp() - ? * interval '1 millisecond'
     order by decided_at limit ?`,
    [olderThanMs, limit],
  );
}

/** @param version that was delivered; a review reopened since is not marked */
export async function markReviewDelivered(db: Db, reviewId: string, version: number): Promise<void> {
  await db('review')
    .where({ review_id: reviewId, version })
    .whereIn('state', ['resolved', 'expired'])
    .update({ delivered_at: db.fn.now() });
}

/**
 * Expires reviews past their due date. A decision that comes first wins.
 * @param reviewId only this one, waiting for its lock; null = all that are not locked
 */
export function expireReviews(
  db: Db,
  limit: number,
  reviewId: string | null = null,
): Promise<readonly EndedReviewRow[]> {
  return query<EndedReviewRow>(db).all(
    `with due as (
       select review_id from review where state in ('open', 'claimed') and due_at <= clock_timestamp()
         ${reviewId === null ? '' : 'and review_id = :reviewId'}
       order by due_at limit :limit for update ${reviewId === null ? 'skip locked' : ''}
     )
     update review r set state = 'expired', decided_at = clock_timestamp(), version = r.version + 1,
       claim_expires_at = null, delivered_at = case when r.kind = 'skill'
         or (r.run_id is null and r.escalation_id is null) then clock_timestamp() end
     from due where r.review_id = due.review_id
     returning ${columns.replace(/\w+/g, 'r.$&')}`,
    { limit, ...(reviewId === null ? {} : { reviewId }) },
  );
}

const cancelled = `state = 'cancelled', decided_at = clock_timestamp(), version = r.version + 1, claim_expires_at = null`;

/** Cancels the reviews of a run that ends. @returns how many */
export async function cancelRunReviews(db: Db, runId: string): Promise<number> {
  return query(db).written(
    `update review r set ${cancelled} where r.run_id = ? and r.state in ('open', 'claimed')`,
    [runId],
  );
}

/** Cancels the reviews of an escalation that ends. @returns how many */
export async function cancelEscalationReviews(db: Db, escalationId: string): Promise<number> {
  return query(db).written(
    `update review r set ${cancelled} where r.escalation_id = ? and r.state in ('open', 'claimed')`,
    [escalationId],
  );
}

/** Cancels the reviews of a skill that was changed or retired. @returns how many */
export async function cancelSkillReviews(db: Db, skillId: string): Promise<number> {
  return query(db).written(
    `update review r set ${cancelled} where r.kind = 'skill' and r.skill_id = ? and r.state in ('open', 'claimed')`,
    [skillId],
  );
}

/** Cancels the reviews of ended runs that were not cancelled with the run. @returns how many */
export async function cancelOrphanedReviews(db: Db): Promise<number> {
  return query(db).written(`update review r set ${cancelled} from run
     where run.run_id = r.run_id and run.finished_at is not null and r.state in ('open', 'claimed')`);
}
