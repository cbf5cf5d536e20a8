/** What comes from outside in a case, by the API: decisions about reviews, control of the run, and events. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Review, ReviewDecision, ReviewSummary } from '@capstan/core/contracts/review';
import { parseDuration } from '@capstan/core/duration';
import type { MockControl, MockDecision } from '@capstan/core/mock-run/mocks';
import type { CapstanClient } from '../support/capstan.ts';
import { decide } from '../support/reviews.ts';
import type { ConformanceCase } from './case.ts';

function toDecision({ after: _, ...decision }: MockDecision): ReviewDecision {
  return decision as ReviewDecision;
}

/** Decides every review of the run by the script, until it is stopped. */
export async function answerReviews(
  capstan: CapstanClient,
  runId: string,
  { script = {} }: ConformanceCase,
  signal: AbortSignal,
): Promise<void> {
  const left = new Map(Object.entries(script.reviews ?? {}).map(([step, list]) => [step, [...list]]));
  const budgetLeft = [...(script.budget_reviews ?? [])];
  const seen = new Set<string>();
  if (left.size + budgetLeft.length === 0) return;
  while (!signal.aborted) {
    const path = `/v1/reviews?run_id=${runId}&state=open`;
    const { body } = await capstan.request<{ items: ReviewSummary[] }>('GET', path);
    for (const { review_id, round, kind, step_id = '' } of body.items) {
      if (seen.has(`${review_id}/${round}`)) continue;
      seen.add(`${review_id}/${round}`);
      const next = kind === 'budget' ? budgetLeft.shift() : left.get(step_id)?.shift();
      if (next === undefined) continue;
      await sleep(parseDuration(next.after ?? '0s'));
      const review = await capstan.request<Review>('GET', `/v1/reviews/${review_id}`);
      await decide(capstan, review.body, toDecision(next));
    }
    await sleep(50);
  }
}

async function controlOnce(
  { request }: CapstanClient,
  runId: string,
  { at, action, budget_ceiling_usd }: MockControl,
): Promise<void> {
  await sleep(parseDuration(at));
  const [path, body] =
    action === 'raise' ? ['budget', { budget_ceiling_usd: budget_ceiling_usd ?? null }] : [action, {}];
  const { status } = await request('POST', `/v1/runs/${runId}/${path}`, body);
  if (status >= 300) throw new Error(`POST /v1/runs/${runId}/${path}: ${status}`);
}

/** Sends the events of the script, each at its time. */
export async function sendEvents(
  { request }: CapstanClient,
  { script = {} }: ConformanceCase,
  nameOf: (name: string) => string,
): Promise<void> {
  await Promise.all(
    (script.events ?? []).map(async ({ name, after, ...event }) => {
      await sleep(parseDuration(after ?? '0s'));
      const { status } = await request('POST', `/v1/events/${nameOf(name)}`, event);
      if (status !== 202) throw new Error(`POST /v1/events/${nameOf(name)}: ${status}`);
    }),
  );
}

/** The steps during a slow call, in this order on a slow machine as well. */
export interface ControlMoments {
  /** Resolves when a slow call has come; at once in a case that has none. */
  readonly slowCall: Promise<void>;
  /** The first of the controls that come during the call is done. */
  readonly controlled: () => void;
}

export async function controlRun(
  capstan: CapstanClient,
  runId: string,
  { script = {} }: ConformanceCase,
  { slowCall, controlled }: ControlMoments,
): Promise<void> {
  await slowCall;
  await Promise.all(
    (script.control ?? []).map((entry) => controlOnce(capstan, runId, entry).finally(controlled)),
  );
}
