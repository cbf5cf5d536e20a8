/** What a watcher is told first: what it has missed since it was there last, or that it has to read again. */
import type { Db } from '../../db/connect.ts';
import { listNewEvents, readHorizon } from '../../db/run/event.ts';
import { countEventsBefore } from '../../db/run/run-changes.ts';
import { compareBudgets } from './budget-frames.ts';
import { compareInstances } from './instance-frames.ts';
import { clockSlackMs } from './project-frames.ts';
import { readReviewsSince } from './review-frames.ts';
import type { ReadRunFrames } from './run-frames.ts';
import {
  earlierOf,
  positionAt,
  readPosition,
  type StreamPosition,
  writePosition,
} from './stream-position.ts';
import { type StreamBatch, type StreamView, selectFrames } from './stream-view.ts';

export interface CatchUpDependencies {
  readonly db: Db;
  readonly readRunFrames: ReadRunFrames;
}

/** From a position to where the rounds begin. */
async function readMissed(
  { db, readRunFrames }: CatchUpDependencies,
  view: StreamView,
  { from, to }: { readonly from: StreamPosition; readonly to: StreamPosition },
): Promise<StreamBatch> {
  const { project_id } = view.caller;
  const span = { from: from.horizon, to: to.horizon };
  const events = await listNewEvents(db, [...view.seqs.keys()], from.events, to.events);
  const endedSince = new Date(from.at.getTime() - clockSlackMs);
  const standing = [
    ...(await readRunFrames(project_id, { ...span, endedSince })),
    ...(await readReviewsSince(db, project_id, endedSince)),
    ...(await compareBudgets(db, project_id, new Map())).frames,
    ...(await compareInstances(db, span.from, new Map())).frames,
  ];
  return { id: writePosition(to), frames: selectFrames(view, events, standing) };
}

/** A client may have been told more by another process than the rounds of this one have reached. */
async function readKnown(db: Db, after: string, start: StreamPosition): Promise<StreamPosition | null> {
  const known = readPosition(after, positionAt(await readHorizon(db), new Date()));
  return known === null ? null : earlierOf(known, start);
}

/** @param start where the rounds begin. @param after what the watcher had as its last id */
export async function catchUp(
  dependencies: CatchUpDependencies,
  view: StreamView,
  { start, after }: { readonly start: StreamPosition; readonly after: string | undefined },
): Promise<StreamBatch> {
  const { db } = dependencies;
  const known = after === undefined ? start : await readKnown(db, after, start);
  const { events } = known ?? start;
  for (const runId of view.seqs.keys()) view.seqs.set(runId, await countEventsBefore(db, runId, events));
  if (known === null) return { id: writePosition(start), frames: [{ kind: 'reset', data: null }] };
  if (after === undefined) return { id: writePosition(start), frames: [] };
  return readMissed(dependencies, view, { from: known, to: start });
}
