/**
 * Reads reviews: a page of a project's reviews, newest first (ids sort by time) or by due date; and marks of the open
 * ones for a live view of the project.
 */
import type { ReviewKind, ReviewState } from '@capstan/core/contracts/review';
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';
import { hasLapsed, type ReviewRow, reviewColumns } from './review.ts';

export interface ReviewFilter {
  readonly state?: ReviewState | undefined;
  readonly kind?: ReviewKind | undefined;
  readonly assignee?: string | undefined;
  readonly run_id?: string | undefined;
  /** Whether it is open past its due date. */
  readonly overdue?: boolean | undefined;
  readonly order?: 'newest' | 'due_at' | undefined;
  /** The last review of the previous page. */
  readonly after?: string | undefined;
  readonly limit: number;
}

export interface ListedReview extends ReviewRow {
  /** The pipeline of its run; null if the run has been deleted. */
  readonly pipeline: string | null;
}

const isOverdue = `(r.state in ('open', 'claimed') and r.due_at <= clock_timestamp())`;

const isDueLater = `(r.due_at, r.review_id) > (select l.due_at, l.review_id from review l where l.review_id = :after)`;

const stateConditions: Readonly<Record<ReviewState, string>> = {
  open: `r.state in ('open', 'claimed') and (r.state = 'open' or ${hasLapsed})`,
  claimed: `r.state = 'claimed' and not ${hasLapsed}`,
  resolved: `r.state = 'resolved'`,
  expired: `r.state = 'expired'`,
  cancelled: `r.state = 'cancelled'`,
};

export async function listReviews(
  db: Db,
  projectId: string,
  { state, kind, assignee, run_id, overdue, order, after, limit }: ReviewFilter,
): Promise<readonly ListedReview[]> {
  const query = db('review as r')
    .select(db.raw(`${reviewColumns}, (select u.pipeline from run u where u.run_id = r.run_id) as pipeline`))
    .where('r.project_id', projectId)
    .limit(limit);
  if (state !== undefined) query.whereRaw(stateConditions[state]);
  if (kind !== undefined) query.where('r.kind', kind);
  if (assignee !== undefined) query.where('r.assignee', assignee).whereRaw(`not ${hasLapsed}`);
  if (run_id !== undefined) query.where('r.run_id', run_id);
  if (overdue !== undefined) query.whereRaw(overdue ? isOverdue : `not ${isOverdue}`);
  if (order === 'due_at') {
    query.orderBy(['r.due_at', 'r.review_id']);
    if (after !== undefined) query.whereRaw(isDueLater, { after });
  } else {
    query.orderBy('r.review_id', 'desc');
    if (after !== undefined) query.where('r.review_id', '<', after);
  }
  return query;
}

export type ReviewMark = Pick<ReviewRow, 'review_id' | 'version' | 'state'>;

/** Lists open reviews by due date. */
export function listReviewMarks(db: Db, projectId: string, limit: number): Promise<readonly ReviewMark[]> {
  return query<ReviewMark>(db).all(
    `select r.review_id, r.version, case when ${hasLapsed} then 'open' else r.state end as state from review r
     where r.project_id = ? and r.state in ('open', 'claimed') order by r.due_at, r.review_id limit ?`,
    [projectId, limit],
  );
}

export async function listReviewsById(db: Db, ids: readonly string[]): Promise<readonly ReviewRow[]> {
  if (ids.length === 0) return [];
  return query<ReviewRow>(db).all(`select ${reviewColumns} from review r where r.review_id = any (?)`, [
    [...ids],
  ]);
}

export async function listReviewsEndedSince(
  db: Db,
  projectId: string,
  since: Date,
): Promise<readonly string[]> {
  const rows = await db('review')
    .where({ project_id: projectId })
    .where('decided_at', '>', since)
    .select('review_id');
  return rows.map(({ review_id }) => review_id);
}
