/** A project as it goes on, for whoever watches it: what was missed since a position, then frames as they come. */
import type { StreamTopic } from '../../contracts/stream.ts';
import type { CancelSignal } from '../../core/cancellation.ts';
import type { Db } from '../../db/connect.ts';
import { listOwnRuns } from '../../db/run/run-changes.ts';
import { AppError } from '../../errors/app-error.ts';
import { type Caller, mayCall } from '../access/caller.ts';
import { type CatchUpDependencies, catchUp } from './catch-up.ts';
import { createRoundQueue } from './round-queue.ts';
import type { StreamFeed } from './stream-feed.ts';
import { type StreamBatch, type StreamView, toBatch } from './stream-view.ts';

export interface StreamQuery {
  readonly topics: readonly StreamTopic[];
  /** Whose every event is wanted. */
  readonly runIds: readonly string[];
  /** What a frame carried as its `id`. */
  readonly after: string | undefined;
}

export interface StreamServiceDependencies extends CatchUpDependencies {
  readonly feed: StreamFeed;
}

const scopes = {
  runs: 'run:read',
  reviews: 'run:read',
  instances: 'capability:read',
  budgets: 'cost:read',
} as const satisfies Record<StreamTopic, string>;

/** So often at least a watcher is told where it stands. */
const quietMs = 15_000;

/** Of the topics those that the key may read. @throws AppError `forbidden` when that is none, `not_found` */
async function openView(db: Db, caller: Caller, { topics, runIds }: StreamQuery): Promise<StreamView> {
  const allowed = new Set(topics.filter((topic) => mayCall(caller, scopes[topic])));
  const followed = mayCall(caller, scopes.runs) ? runIds : [];
  if (allowed.size === 0 && followed.length === 0)
    throw new AppError('forbidden', `${caller.key_id} may read nothing of ${topics.join(', ')}`);
  const own = await listOwnRuns(db, caller.project_id, followed);
  const foreign = followed.find((id) => !own.has(id));
  if (foreign !== undefined) throw new AppError('not_found', `there is no run ${foreign}`);
  return { caller, topics: allowed, seqs: new Map(followed.map((id) => [id, 0])) };
}

async function* follow(
  dependencies: StreamServiceDependencies,
  view: StreamView,
  { after, signal }: { readonly after: string | undefined; readonly signal: CancelSignal },
): AsyncGenerator<StreamBatch, void, undefined> {
  const { feed } = dependencies;
  const queue = createRoundQueue(signal);
  const { caller, topics, seqs } = view;
  const watcher = { projectId: caller.project_id, topics, runIds: [...seqs.keys()], take: queue.take };
  try {
    const start = await feed.add(watcher);
    yield await catchUp(dependencies, view, { start, after });
    let toldAt = Date.now();
    for await (const round of queue.rounds()) {
      const batch = toBatch(view, round);
      if (batch.frames.length === 0 && Date.now() - toldAt < quietMs) continue;
      toldAt = Date.now();
      yield batch;
    }
  } finally {
    feed.remove(watcher);
  }
}

export function createStreamService(dependencies: StreamServiceDependencies) {
  return {
    /**
     * @returns batches until `signal` aborts, or the watcher is too slow; the first at once, to say where it stands
     * @throws AppError `not_found` for a run that the project does not have, `forbidden`
     */
    open: async (caller: Caller, query: StreamQuery) => {
      const view = await openView(dependencies.db, caller, query);
      return (signal: CancelSignal): AsyncIterable<StreamBatch> =>
        follow(dependencies, view, { after: query.after, signal });
    },
  };
}

export type StreamService = ReturnType<typeof createStreamService>;
