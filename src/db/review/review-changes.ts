/** Reviews of a project as somebody who watches them needs them. */
import type { Db } from '../connect.ts';
import { hasLapsed, type ReviewRow, reviewColumns } from './review.ts';

export type ReviewMark = Pick<ReviewRow, 'review_id' | 'version' | 'state'>;

/** Those that wait, what is due first before the others. */
export async function listReviewMarks(
  db: Db,
  projectId: string,
  limit: number,
): Promise<readonly ReviewMark[]> {
  const { rows } = await db.raw<{ rows: ReviewMark[] }>(
    `select r.review_id, r.version, case when ${hasLapsed} then 'open' else r.state end as state from review r
     where r.project_id = ? and r.state in ('open', 'claimed') order by r.due_at, r.review_id limit ?`,
    [projectId, limit],
  );
  return rows;
}

export async function listReviewsById(db: Db, ids: readonly string[]): Promise<readonly ReviewRow[]> {
  if (ids.length === 0) return [];
  const { rows } = await db.raw<{ rows: ReviewRow[] }>(
    `select ${reviewColumns} from review r where r.review_id = any (?)`,
    [[...ids]],
  );
  return rows;
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
