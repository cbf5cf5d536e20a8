/**
 * Queries on reviews. The row decides: a claim and a decision are compare-and-set, so one of two people wins. A claim
 * whose lease has expired reads as open. Listing and maintenance are in review-list.ts and review-delivery.ts.
 *
 * A new limit of a budget also resolves its review, even if the person has not seen the review.
 */
import type { ReviewDecision, ReviewKind, ReviewPayload, ReviewState } from '@capstan/core/contracts/review';
import type { Db } from '../connect.ts';
import { query, toJson } from '../statements.ts';

/** A review asks for money: the ladder of the step or item `s` has none. */
export const asksForMoney = `exists (select from review m where m.run_id = s.run_id and m.step_id = s.step_id
   and coalesce(m.item, 0) = s.item and m.kind = 'budget' and m.state in ('open', 'claimed'))`;

export interface NewReview
  extends Pick<
    ReviewRow,
    | 'review_id'
    | 'project_id'
    | 'kind'
    | 'reason'
    | 'run_id'
    | 'step_id'
    | 'item'
    | 'escalation_id'
    | 'skill_id'
  > {
  /** For a review of kind budget: the scope that has no room. */
  readonly subject?: string | null;
  readonly due_in_ms: number;
  readonly payload: ReviewPayload;
}

export interface ReviewRow {
  readonly review_id: string;
  readonly project_id: string;
  readonly kind: ReviewKind;
  readonly reason: string;
  readonly state: ReviewState;
  readonly run_id: string | null;
  readonly step_id: string | null;
  readonly item: number | null;
  readonly escalation_id: string | null;
  readonly skill_id: string | null;
  readonly subject: string | null;
  /** The person who holds the claim; null if the claim expired before a decision. */
  readonly assignee: string | null;
  readonly claim_expires_at: Date | null;
  readonly due_at: Date;
  readonly payload: ReviewPayload;
  readonly decision: ReviewDecision | null;
  readonly decided_by: string | null;
  /** When it was decided, expired or cancelled. */
  readonly decided_at: Date | null;
  readonly version: number;
  readonly round: number;
  readonly delivered_at: Date | null;
  readonly created_at: Date;
}

/** For `review r`: its claim has expired. */
export const hasLapsed = `(r.state = 'claimed' and r.claim_expires_at <= clock_timestamp())`;

/** For `review r`. */
export const reviewColumns = `r.review_id, r.project_id, r.kind, r.reason, r.run_id, r.step_id, r.item,
  r.escalation_id, r.skill_id, r.subject, r.due_at, r.payload, r.decision, r.decided_by, r.decided_at, r.version, r.round,
  r.delivered_at, r.created_at, case when ${hasLapsed} then 'open' else r.state end as state,
  case when not ${hasLapsed} then r.assignee end as assignee,
  case when not ${hasLapsed} then r.claim_expires_at end as claim_expires_at`;

/** @returns false if its subject has an open review; nothing was written */
export async function insertReview(db: Db, { due_in_ms, ...review }: NewReview): Promise<boolean> {
  const written = await db('review')
    .insert({
      ...review,
      payload: toJson(review.payload),
      due_at: db.raw(`clock_timestamp() + ? * interval '1 millisecond'`, [due_in_ms]),
    })
    .onConflict()
    .ignore()
    .returning('review_id');
  return written.length === 1;
}

export function findReview(db: Db, projectId: string, reviewId: string): Promise<ReviewRow | undefined> {
  return query<ReviewRow>(db).first(
    `select ${reviewColumns} from review r where r.review_id = ? and r.project_id = ?`,
    [reviewId, projectId],
  );
}

/** For workers, which read the id from the run or the escalation. */
export function readReview(db: Db, reviewId: string): Promise<ReviewRow | undefined> {
  return query<ReviewRow>(db).first(`select ${reviewColumns} from review r where r.review_id = ?`, [
    reviewId,
  ]);
}

export type ReviewSubject =
  | { readonly escalation_id: string }
  | { readonly skill_id: string }
  /** The review of a budget. */
  | { readonly project_id: string; readonly subject: string }
  /** The review of a `review` step. */
  | { readonly run_id: string; readonly step_id: string; readonly item: number };

function conditionOf(about: ReviewSubject): readonly [string, readonly (string | number)[]] {
  if ('escalation_id' in about) return ['r.escalation_id = ?', [about.escalation_id]];
  if ('skill_id' in about) return [`r.kind = 'skill' and r.skill_id = ?`, [about.skill_id]];
  if ('subject' in about) {
    return [
      `r.kind = 'budget' and r.escalation_id is null and r.project_id = ? and r.subject = ?`,
      [about.project_id, about.subject],
    ];
  }
  return [
    `r.kind = 'step' and r.run_id = ? and r.step_id = ? and r.item = ?`,
    [about.run_id, about.step_id, about.item],
  ];
}

/** Finds the one open review about a subject. */
export function findOpenReview(db: Db, about: ReviewSubject): Promise<ReviewRow | undefined> {
  const [condition, bindings] = conditionOf(about);
  return query<ReviewRow>(db).first(
    `select ${reviewColumns} from review r where ${condition} and r.state in ('open', 'claimed')`,
    [...bindings],
  );
}

/** Finds the last review about a subject. */
export function findLastReview(db: Db, about: ReviewSubject): Promise<ReviewRow | undefined> {
  const [condition, bindings] = conditionOf(about);
  return query<ReviewRow>(db).first(
    `select ${reviewColumns} from review r where ${condition} order by r.review_id desc limit 1`,
    [...bindings],
  );
}

interface ReviewKey {
  readonly project_id: string;
  readonly review_id: string;
}

const isFree = `(r.state = 'open' or r.state = 'claimed' and (r.assignee = :by or ${hasLapsed}))`;

/**
 * Claims for `by`, or extends the claim of `by`, which keeps the version.
 * @returns undefined if it is not available; read it to see why
 */
export function claimReview(
  db: Db,
  { project_id, review_id, by, lease_ms }: ReviewKey & { readonly by: string; readonly lease_ms: number },
): Promise<ReviewRow | undefined> {
  return query<ReviewRow>(db).first(
    `update review r set state = 'claimed', assignee = :by,
       claim_expires_at = clock_timestamp() + :lease_ms * interval '1 millisecond',
       version = r.version + case when r.state = 'claimed' and r.assignee = :by then 0 else 1 end
     where r.review_id = :review_id and r.project_id = :project_id and ${isFree} returning ${reviewColumns}`,
    { project_id, review_id, by, lease_ms },
  );
}

/** @returns undefined if `by` does not hold the claim */
export function releaseReview(
  db: Db,
  { project_id, review_id, by }: ReviewKey & { readonly by: string },
): Promise<ReviewRow | undefined> {
  return query<ReviewRow>(db).first(
    `update review r set state = 'open', assignee = null, claim_expires_at = null, version = r.version + 1
     where r.review_id = :review_id and r.project_id = :project_id and r.state = 'claimed' and r.assignee = :by
     returning ${reviewColumns}`,
    { project_id, review_id, by },
  );
}

interface DecideRequest extends ReviewKey {
  readonly by: string;
  /** The version that was read. */
  readonly version: number;
  readonly decision: ReviewDecision;
}

/**
 * Resolves a review that is open, or claimed by the same person. No workflow waits for a review of a skill, or for one
 * without run and escalation: it counts as delivered.
 * @returns undefined if the version differs, or it is not available; read it to see who won
 */
export function decideReview(
  db: Db,
  { project_id, review_id, by, version, decision }: DecideRequest,
): Promise<ReviewRow | undefined> {
  return query<ReviewRow>(db).first(
    `update review r set state = 'resolved', decision = :decision, decided_by = :by,
       decided_at = clock_timestamp(), version = r.version + 1, claim_expires_at = null,
       assignee = case when r.assignee = :by then r.assignee end,
       delivered_at = case when r.kind = 'skill' or (r.run_id is null and r.escalation_id is null)
         then clock_timestamp() end
     where r.review_id = :review_id and r.project_id = :project_id and r.version = :version and ${isFree}
     returning ${reviewColumns}`,
    { project_id, review_id, by, version, decision: toJson(decision) },
  );
}

interface ReopenRequest {
  readonly review_id: string;
  /** The number of the round whose decision did not help. */
  readonly round: number;
  readonly reason: string;
  readonly subject?: string | null | undefined;
  readonly payload: ReviewPayload;
  readonly due_in_ms: number;
}

/**
 * Opens the next round after a decision that did not help.
 * @returns false if that round was reopened before, or is not resolved
 */
export function reopenReview(
  db: Db,
  { payload, subject = null, ...request }: ReopenRequest,
): Promise<boolean> {
  return query(db).some(
    `update review set state = 'open', round = round + 1, version = version + 1, reason = :reason, subject = :subject,
       payload = :payload, due_at = clock_timestamp() + :due_in_ms * interval '1 millisecond', assignee = null,
       claim_expires_at = null, decision = null, decided_by = null, decided_at = null, delivered_at = null
     where review_id = :review_id and round = :round and state = 'resolved' returning 1`,
    { ...request, subject, payload: toJson(payload) },
  );
}

/**
 * Only ladders wait for the decision: steps that wait for the budget are woken separately. A ladder's review stays open
 * if the new limit is not higher than the one that it shows.
 *
 * @param limitUsd null = no limit
 * @returns ids of those that were open
 */
export function resolveBudgetReviews(
  trx: Db,
  subject: string,
  {
    by,
    decision,
    limitUsd,
  }: { readonly by: string; readonly decision: ReviewDecision; readonly limitUsd: number | null },
): Promise<readonly { readonly review_id: string; readonly project_id: string }[]> {
  return query<{ review_id: string; project_id: string }>(trx).all(
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
    { subject, by, limitUsd, decision: toJson(decision) },
  );
}
