/** How the questions of a project stand. They are compared with what was seen last: their rows tell no transaction. */
import type { StreamFrame } from '../../contracts/stream.ts';
import type { Db } from '../../db/connect.ts';
import type { ReviewRow } from '../../db/review/review.ts';
import {
  listReviewMarks,
  listReviewsById,
  listReviewsEndedSince,
  type ReviewMark,
} from '../../db/review/review-changes.ts';
import { standingOf } from '../reviews/review-conflict.ts';

/** Of those that wait, what is due first. */
const mostReviews = 1_000;

export type SeenReviews = ReadonlyMap<string, string>;

function toFrame(row: ReviewRow): StreamFrame {
  const about = row.run_id === null ? {} : { run_id: row.run_id };
  const data = { ...standingOf(row), kind: row.kind, due_at: row.due_at.toISOString(), ...about };
  return { kind: 'review', data };
}

function markOf({ version, state }: ReviewMark): string {
  return `${version} ${state}`;
}

export async function seeReviews(db: Db, projectId: string): Promise<SeenReviews> {
  const marks = await listReviewMarks(db, projectId, mostReviews);
  return new Map(marks.map((mark) => [mark.review_id, markOf(mark)]));
}

/** @returns what has changed, and what is seen now */
export async function compareReviews(
  db: Db,
  projectId: string,
  seen: SeenReviews,
): Promise<{ readonly frames: readonly StreamFrame[]; readonly seen: SeenReviews }> {
  const now = await seeReviews(db, projectId);
  const changed = [...now].filter(([id, mark]) => seen.get(id) !== mark).map(([id]) => id);
  const gone = [...seen.keys()].filter((id) => !now.has(id));
  const rows = await listReviewsById(db, [...changed, ...gone]);
  return { frames: rows.map(toFrame), seen: now };
}

/** All that wait, and all that ended since. */
export async function readReviewsSince(
  db: Db,
  projectId: string,
  since: Date,
): Promise<readonly StreamFrame[]> {
  const waiting = await seeReviews(db, projectId);
  const ended = await listReviewsEndedSince(db, projectId, since);
  return (await listReviewsById(db, [...waiting.keys(), ...ended])).map(toFrame);
}
