import type { Review, ReviewDecision, ReviewKind, ReviewSummary } from '@capstan/core/contracts/review';
import { queryOptions } from '@tanstack/react-query';
import { askPlainly, newIdempotencyKey } from './client.ts';

interface ReviewPage {
  readonly items: readonly ReviewSummary[];
  readonly next_cursor: string | null;
}

export interface ReviewsFilter {
  readonly kind?: ReviewKind | undefined;
  readonly assignee?: string | undefined;
  readonly run_id?: string | undefined;
}

async function readOpen(filter: ReviewsFilter): Promise<ReviewSummary[]> {
  const query = new URLSearchParams({ limit: '200', order: 'due_at' });
  for (const [name, value] of Object.entries(filter)) if (value !== undefined) query.set(name, value);
  const pages = await Promise.all(
    (['open', 'claimed'] as const).map((state) =>
      askPlainly<ReviewPage>(`/v1/reviews?${query}&state=${state}`),
    ),
  );
  return pages.flatMap(({ items }) => items).sort((a, b) => a.due_at.localeCompare(b.due_at));
}

const mostRows = 500;

async function readRows(filter: ReviewsFilter): Promise<ReviewSummary[]> {
  const rows: ReviewSummary[] = [];
  for (const state of ['open', 'claimed']) {
    let cursor: string | null = null;
    do {
      const query = new URLSearchParams({ limit: '100', order: 'due_at', payload: 'full', state });
      for (const [name, value] of Object.entries({ ...filter, cursor: cursor ?? undefined }))
        if (value !== undefined) query.set(name, value);
      const page: ReviewPage = await askPlainly<ReviewPage>(`/v1/reviews?${query}`);
      rows.push(...page.items);
      cursor = page.next_cursor;
    } while (cursor !== null && rows.length < mostRows);
  }
  return rows.sort((a, b) => a.due_at.localeCompare(b.due_at));
}

/** Open reviews with what a decision needs, the most urgent first; the first 500. */
export function reviewRowsQuery(filter: ReviewsFilter = {}) {
  return queryOptions({ queryKey: ['reviews', 'rows', filter], queryFn: () => readRows(filter) });
}

/** Open reviews, the most urgent first. */
export function openReviewsQuery(filter: ReviewsFilter = {}) {
  return queryOptions({ queryKey: ['reviews', 'open', filter], queryFn: () => readOpen(filter) });
}

export function decidedReviewsQuery() {
  return queryOptions({
    queryKey: ['reviews', 'decided'],
    queryFn: () => askPlainly<ReviewPage>('/v1/reviews?limit=20&state=resolved'),
  });
}

export function reviewQuery(reviewId: string) {
  return queryOptions({
    queryKey: ['review', reviewId],
    queryFn: () => askPlainly<Review>(`/v1/reviews/${reviewId}`),
    structuralSharing: keepNewest,
  });
}

/** A read that began before a claim may finish after it: it would bring back the former version. */
function keepNewest(known: unknown, answer: unknown): unknown {
  return isReview(known) && isReview(answer) && known.version > answer.version ? known : answer;
}

function isReview(value: unknown): value is Review {
  return typeof value === 'object' && value !== null && 'version' in value;
}

export function claimReview(reviewId: string): Promise<Review> {
  return askPlainly(`/v1/reviews/${reviewId}/claim`, { method: 'POST' });
}

export function releaseReview(reviewId: string): Promise<Review> {
  return askPlainly(`/v1/reviews/${reviewId}/release`, { method: 'POST' });
}

/** @param version of the displayed review: another one is refused */
export function decideReview(reviewId: string, version: number, decision: ReviewDecision): Promise<Review> {
  return askPlainly(`/v1/reviews/${reviewId}/decision`, {
    method: 'POST',
    body: decision,
    headers: { 'If-Match': `"${version}"`, 'Idempotency-Key': newIdempotencyKey() },
  });
}
