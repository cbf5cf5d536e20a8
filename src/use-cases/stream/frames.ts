/**
 * Reads the changes of a project, poll by poll, for its watchers: the states of runs, reviews, budgets and instances.
 * Reviews and budgets are compared with their last states, because their rows have no transaction id.
 */

import type { RunFrame, StreamFrame, StreamTopic } from '@capstan/core/contracts/event';
import type { Budget } from '@capstan/core/contracts/money';
import { fromNanoUsd } from '@capstan/core/money/nano-usd';
import { serves } from '@capstan/core/routing/visible-to';
import type { ServerCtx } from '../../context.ts';
import type { Db } from '../../db/connect.ts';
import type { InstanceRow } from '../../db/instance/instance.ts';
import { countHeldCalls, listChangedInstances } from '../../db/instance/instance-list.ts';
import type { ReviewRow } from '../../db/review/review.ts';
import {
  listReviewMarks,
  listReviewsById,
  listReviewsEndedSince,
  type ReviewMark,
} from '../../db/review/review-list.ts';
import {
  type LogSpan,
  listChangedRuns,
  listRunStandings,
  type RunStandingRow,
} from '../../db/run/run-list.ts';
import { readAllBudgets } from '../money/budgets.ts';
import { toInstance } from '../registry/instance-view.ts';
import { standingOf } from '../reviews/review-view.ts';
import { countSteps } from '../runs/run-view.ts';

type SeenBudgets = ReadonlyMap<Budget['scope'], string>;

/** Returns today's budgets that differ from the last ones seen. */
export async function compareBudgets(
  db: Db,
  projectId: string,
  seen: SeenBudgets,
): Promise<{ readonly frames: readonly StreamFrame[]; readonly seen: SeenBudgets }> {
  const budgets = await readAllBudgets(db, projectId);
  const changed = budgets.filter((budget) => seen.get(budget.scope) !== JSON.stringify(budget));
  return {
    frames: changed.map((data) => ({ kind: 'budget', data })),
    seen: new Map(budgets.map((budget) => [budget.scope, JSON.stringify(budget)])),
  };
}

/** The most open reviews that are read, by due date. */
const mostReviews = 1_000;

type SeenReviews = ReadonlyMap<string, string>;

function toReviewFrame(row: ReviewRow): StreamFrame {
  const about = row.run_id === null ? {} : { run_id: row.run_id };
  const data = { ...standingOf(row), kind: row.kind, due_at: row.due_at.toISOString(), ...about };
  return { kind: 'review', data };
}

function markOf({ version, state }: ReviewMark): string {
  return `${version} ${state}`;
}

async function seeReviews(db: Db, projectId: string): Promise<SeenReviews> {
  const marks = await listReviewMarks(db, projectId, mostReviews);
  return new Map(marks.map((mark) => [mark.review_id, markOf(mark)]));
}

/** @returns the changes, and the marks of now */
async function compareReviews(
  db: Db,
  projectId: string,
  seen: SeenReviews,
): Promise<{ readonly frames: readonly StreamFrame[]; readonly seen: SeenReviews }> {
  const now = await seeReviews(db, projectId);
  const changed = [...now].filter(([id, mark]) => seen.get(id) !== mark).map(([id]) => id);
  const gone = [...seen.keys()].filter((id) => !now.has(id));
  const rows = await listReviewsById(db, [...changed, ...gone]);
  return { frames: rows.map(toReviewFrame), seen: now };
}

/** Reads all open reviews, and those that ended since. */
export async function readReviewsSince(
  db: Db,
  projectId: string,
  since: Date,
): Promise<readonly StreamFrame[]> {
  const waiting = await seeReviews(db, projectId);
  const ended = await listReviewsEndedSince(db, projectId, since);
  return (await listReviewsById(db, [...waiting.keys(), ...ended])).map(toReviewFrame);
}

/** The largest difference between the database's clock and this process's. */
export const clockSlackMs = 10_000;

interface SeenProject {
  readonly reviews: SeenReviews;
  readonly budgets: SeenBudgets;
}

/** `isSlow`: includes reviews and budgets. */
type ReadSpan = LogSpan & { readonly since: Date; readonly isSlow: boolean };

interface TopicChoice {
  readonly topics: ReadonlySet<StreamTopic>;
}

export function isWanted(wishes: readonly TopicChoice[], topic: StreamTopic): boolean {
  return wishes.some(({ topics }) => topics.has(topic));
}

export function createProjectFrames(ctx: FrameCtx) {
  const { db } = ctx;
  const seen = new Map<string, SeenProject>();

  const look = async (projectId: string): Promise<SeenProject> => {
    const known = seen.get(projectId);
    if (known !== undefined) return known;
    const { seen: budgets } = await compareBudgets(db, projectId, new Map());
    const first = { reviews: await seeReviews(db, projectId), budgets };
    seen.set(projectId, first);
    return first;
  };
  const readSlow = async (projectId: string): Promise<readonly StreamFrame[]> => {
    const before = await look(projectId);
    const reviews = await compareReviews(db, projectId, before.reviews);
    const budgets = await compareBudgets(db, projectId, before.budgets);
    seen.set(projectId, { reviews: reviews.seen, budgets: budgets.seen });
    return [...reviews.frames, ...budgets.frames];
  };

  return {
    prepare: async (projectId: string): Promise<void> => void (await look(projectId)),
    read: async (
      projectId: string,
      { since, isSlow, ...span }: ReadSpan,
      wishes: readonly TopicChoice[],
    ): Promise<readonly StreamFrame[]> => {
      const endedSince = new Date(since.getTime() - clockSlackMs);
      const runs = isWanted(wishes, 'runs')
        ? await readRunFrames(ctx, projectId, { ...span, endedSince })
        : [];
      return isSlow ? [...runs, ...(await readSlow(projectId))] : runs;
    },
    forget: (): void => seen.clear(),
  };
}

/** The most runs of one poll; another poll follows with its next change. */
const mostRuns = 500;

function toRunFrame(row: RunStandingRow): RunFrame {
  return {
    run_id: row.run_id,
    pipeline: row.pipeline,
    state: row.state,
    awaiting: [...row.awaiting],
    ...(row.follows === null ? {} : { follows: row.follows }),
    ...(row.stalled === null ? {} : { stalled: row.stalled }),
    ...(row.error === null ? {} : { error: row.error }),
    cost_usd: fromNanoUsd(BigInt(row.cost_nano)),
    reserved_usd: fromNanoUsd(BigInt(row.reserved_nano)),
    steps: { ...row.step_counts },
    ...(row.item_counts === null ? {} : { item_counts: { ...row.item_counts } }),
  };
}

export type FrameCtx = Pick<ServerCtx, 'db' | 'stepSizes'>;

/** Reads the states of runs for the watchers of a project. */
export async function readRunFrames(
  { db, stepSizes }: FrameCtx,
  projectId: string,
  span: LogSpan & { readonly endedSince: Date },
): Promise<readonly StreamFrame[]> {
  const changed = await listChangedRuns(db, projectId, { ...span, limit: mostRuns });
  const rows = await countSteps(db, stepSizes, await listRunStandings(db, changed));
  return rows.map((row) => ({ kind: 'run', data: toRunFrame(row) }));
}

export type HeldCalls = ReadonlyMap<string, number>;

/** Reads the instances whose row or number of calls has changed. */
export async function compareInstances(
  db: Db,
  horizon: string,
  held: HeldCalls,
): Promise<{ readonly rows: readonly InstanceRow[]; readonly held: HeldCalls }> {
  const now = await countHeldCalls(db);
  const ids = new Set([...now.keys(), ...held.keys()]);
  const other = [...ids].filter((id) => now.get(id) !== held.get(id));
  return { rows: await listChangedInstances(db, horizon, other), held: now };
}

/** The instances that serve the project, as it sees them. */
export function toInstanceFrames(rows: readonly InstanceRow[], projectId: string): readonly StreamFrame[] {
  return rows
    .filter((row) => serves(row, projectId))
    .map((row) => ({ kind: 'instance', data: toInstance(row, projectId) }));
}
