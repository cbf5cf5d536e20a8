/** What has changed in a project, round by round. */
import type { StreamFrame, StreamTopic } from '../../contracts/stream.ts';
import type { Db } from '../../db/connect.ts';
import type { LogSpan } from '../../db/run/run-changes.ts';
import { compareBudgets, type SeenBudgets } from './budget-frames.ts';
import { compareReviews, type SeenReviews, seeReviews } from './review-frames.ts';
import type { ReadRunFrames } from './run-frames.ts';

/** Between the clock of the database and that of this process. */
export const clockSlackMs = 10_000;

interface SeenProject {
  readonly reviews: SeenReviews;
  readonly budgets: SeenBudgets;
}

/** `isSlow`: reviews and budgets are looked at too. */
type ReadSpan = LogSpan & { readonly since: Date; readonly isSlow: boolean };

interface TopicChoice {
  readonly topics: ReadonlySet<StreamTopic>;
}

export function isWanted(wishes: readonly TopicChoice[], topic: StreamTopic): boolean {
  return wishes.some(({ topics }) => topics.has(topic));
}

export function createProjectFrames(db: Db, readRunFrames: ReadRunFrames) {
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
      const runs = isWanted(wishes, 'runs') ? await readRunFrames(projectId, { ...span, endedSince }) : [];
      return isSlow ? [...runs, ...(await readSlow(projectId))] : runs;
    },
    forget: (): void => seen.clear(),
  };
}
