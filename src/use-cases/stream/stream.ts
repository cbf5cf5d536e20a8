/**
 * The stream of a project for one watcher: the changes since a position, then new frames, of the topics that its key
 * may read.
 */

import { type CancelSignal, onCancel } from '@capstan/core/cancellation';
import type { StreamFrame, StreamQuery, StreamTopic } from '@capstan/core/contracts/event';
import { AppError } from '@capstan/core/errors/app-error';
import type { ServerCtx } from '../../context.ts';
import type { Db } from '../../db/connect.ts';
import { listNewEvents, readHorizon } from '../../db/run/event.ts';
import { countEventsBefore, listOwnRuns } from '../../db/run/run-list.ts';
import { toRunEvent } from '../../parts/feeds/event-feed.ts';
import {
  earlierOf,
  type NewEvents,
  positionAt,
  readPosition,
  type StreamPosition,
  type StreamRound,
  writePosition,
} from '../../parts/feeds/stream-feed.ts';
import { type Caller, isOperator, mayCall } from '../access/caller.ts';
import {
  clockSlackMs,
  compareBudgets,
  compareInstances,
  type FrameCtx,
  readReviewsSince,
  readRunFrames,
  toInstanceFrames,
} from './frames.ts';

// The part of a poll that one watcher may see.

interface StreamView {
  readonly caller: Caller;
  readonly topics: ReadonlySet<StreamTopic>;
  /** The number of the last sent event, by run. */
  readonly seqs: Map<string, number>;
}

/** Frames that belong together; after all of them a watcher is at the position `id`. */
export interface StreamBatch {
  readonly id: string;
  readonly frames: readonly StreamFrame[];
}

const topicOf = { run: 'runs', review: 'reviews', instance: 'instances', budget: 'budgets' } as const;

function isShown({ caller, topics }: StreamView, frame: StreamFrame): boolean {
  if (frame.kind === 'step' || frame.kind === 'reset') return true;
  if (frame.kind === 'budget' && frame.data.scope === 'global' && !isOperator(caller)) return false;
  return topics.has(topicOf[frame.kind]);
}

function toStepFrames({ seqs }: StreamView, events: NewEvents): readonly StreamFrame[] {
  return events
    .filter(({ run_id }) => seqs.has(run_id))
    .map((row) => {
      const seq = (seqs.get(row.run_id) ?? 0) + 1;
      seqs.set(row.run_id, seq);
      return { kind: 'step', data: toRunEvent({ ...row, seq }) };
    });
}

/** Puts events before the states that they led to. */
function selectFrames(
  view: StreamView,
  events: NewEvents,
  standing: readonly StreamFrame[],
): readonly StreamFrame[] {
  return [...toStepFrames(view, events), ...standing.filter((frame) => isShown(view, frame))];
}

function toBatch(view: StreamView, { events, instances, ofProject, position }: StreamRound): StreamBatch {
  const { project_id } = view.caller;
  const standing = [...(ofProject.get(project_id) ?? []), ...toInstanceFrames(instances, project_id)];
  return { id: writePosition(position), frames: selectFrames(view, events, standing) };
}

// The first batch of a watcher: the changes since its last position, or a reset.

/** Reads the changes from a position to the start of the polls. */
async function readMissed(
  ctx: FrameCtx,
  view: StreamView,
  { from, to }: { readonly from: StreamPosition; readonly to: StreamPosition },
): Promise<StreamBatch> {
  const { db } = ctx;
  const { project_id } = view.caller;
  const span = { from: from.horizon, to: to.horizon };
  const events = await listNewEvents(db, [...view.seqs.keys()], { from: from.events, to: to.events });
  const endedSince = new Date(from.at.getTime() - clockSlackMs);
  const standing = [
    ...(await readRunFrames(ctx, project_id, { ...span, endedSince })),
    ...(await readReviewsSince(db, project_id, endedSince)),
    ...(await compareBudgets(db, project_id, new Map())).frames,
    ...toInstanceFrames((await compareInstances(db, span.from, new Map())).rows, project_id),
  ];
  return { id: writePosition(to), frames: selectFrames(view, events, standing) };
}

/** Another process may have sent the client more than the polls of this one have reached. */
async function readKnown(db: Db, after: string, start: StreamPosition): Promise<StreamPosition | null> {
  const known = readPosition(after, positionAt(await readHorizon(db), new Date()));
  return known === null ? null : earlierOf(known, start);
}

/** @param start where the polls begin. @param after the watcher's last id */
async function catchUp(
  ctx: FrameCtx,
  view: StreamView,
  { start, after }: { readonly start: StreamPosition; readonly after: string | undefined },
): Promise<StreamBatch> {
  const { db } = ctx;
  const known = after === undefined ? start : await readKnown(db, after, start);
  const { events } = known ?? start;
  for (const runId of view.seqs.keys()) view.seqs.set(runId, await countEventsBefore(db, runId, events));
  if (known === null) return { id: writePosition(start), frames: [{ kind: 'reset', data: null }] };
  if (after === undefined) return { id: writePosition(start), frames: [] };
  return readMissed(ctx, view, { from: known, to: start });
}

const mostWaiting = 200;

interface RoundQueue {
  readonly take: (round: StreamRound) => void;
  /** Until `signal` aborts, or too many are queued. */
  readonly rounds: () => AsyncGenerator<StreamRound, void, undefined>;
}

/** Queues polls for one watcher. One that reads too slowly is cut off, and resumes from its position. */
function createRoundQueue(signal: CancelSignal): RoundQueue {
  const waiting: StreamRound[] = [];
  let isBehind = false;
  let wake: () => void = () => undefined;
  const news = (): Promise<void> =>
    new Promise((resolve) => {
      wake = resolve;
      if (waiting.length > 0 || isBehind || signal.aborted) resolve();
    });
  return {
    take: (round) => {
      if (waiting.length >= mostWaiting) isBehind = true;
      else waiting.push(round);
      wake();
    },
    rounds: async function* () {
      const stopListening = onCancel(signal, () => wake());
      try {
        while (!signal.aborted && !isBehind) {
          const round = waiting.shift();
          if (round === undefined) await news();
          else yield round;
        }
      } finally {
        stopListening();
      }
    },
  };
}

const scopes = {
  runs: 'run:read',
  reviews: 'run:read',
  instances: 'capability:read',
  budgets: 'cost:read',
} as const satisfies Record<StreamTopic, string>;

/** The longest time until a watcher gets its position. */
const quietMs = 15_000;

/** Opens a view of the topics that the key may read. @throws AppError `forbidden` when there is none, `not_found` */
async function openView(
  db: Db,
  caller: Caller,
  { topics, run_id: runIds }: StreamQuery,
): Promise<StreamView> {
  const allowed = new Set(topics.filter((topic) => mayCall(caller, scopes[topic])));
  const followed = mayCall(caller, scopes.runs) ? runIds : [];
  if (allowed.size === 0 && followed.length === 0)
    throw new AppError('forbidden', `${caller.key_id} lacks the scope to read any of ${topics.join(', ')}`);
  const own = await listOwnRuns(db, caller.project_id, followed);
  const foreign = followed.find((id) => !own.has(id));
  if (foreign !== undefined) throw new AppError('not_found', `there is no run ${foreign}`);
  return { caller, topics: allowed, seqs: new Map(followed.map((id) => [id, 0])) };
}

async function* follow(
  ctx: ServerCtx,
  view: StreamView,
  { after, signal }: { readonly after: string | undefined; readonly signal: CancelSignal },
): AsyncGenerator<StreamBatch, void, undefined> {
  const queue = createRoundQueue(signal);
  const { caller, topics, seqs } = view;
  const watcher = { projectId: caller.project_id, topics, runIds: [...seqs.keys()], take: queue.take };
  try {
    const start = await ctx.frames.add(watcher);
    yield await catchUp(ctx, view, { start, after });
    let toldAt = Date.now();
    for await (const round of queue.rounds()) {
      const batch = toBatch(view, round);
      if (batch.frames.length === 0 && Date.now() - toldAt < quietMs) continue;
      toldAt = Date.now();
      yield batch;
    }
  } finally {
    ctx.frames.remove(watcher);
  }
}

/**
 * @returns batches until `signal` aborts, or the watcher is too slow; the first at once, with its position
 * @throws AppError `not_found` for a run that the project does not have, `forbidden`
 */
export async function openStream(ctx: ServerCtx, caller: Caller, query: StreamQuery) {
  const view = await openView(ctx.db, caller, query);
  return (signal: CancelSignal): AsyncIterable<StreamBatch> =>
    follow(ctx, view, { after: query.after, signal });
}
