/**
 * The router's picture of all instances, in memory: polled, and corrected at once by what this process claims and
 * releases. It may be a poll old; the database checks every claim again, so it only has to be good, not exact.
 */
import type { Logger } from 'pino';
import type { InstanceSnapshot } from '../../core/routing/types.ts';
import type { Db } from '../../db/connect.ts';
import { type FeedPoll, type FeedRow, pollInstances } from '../../db/instance-feed.ts';
import { createPollLoop } from './poll-loop.ts';
import { createReleaseBell } from './release-bell.ts';

export interface InstanceFeed {
  /** Reads all instances, then goes on polling. Resolves after the first poll, also when it failed. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Resolves after a poll that began after this call. @throws what the database throws */
  refresh(): Promise<void>;
  candidates(capability: string): readonly InstanceSnapshot[];
  /** One call more on an instance, until a poll that begins later has counted it. */
  noteClaim(instanceId: string): void;
  /** One call less. */
  noteRelease(instanceId: string): void;
  /** True when there may be room on an instance of the capability; false when the time is over or `signal` aborts. */
  waitForRelease(capability: string, timeoutMs: number, signal: AbortSignal): Promise<boolean>;
}

export interface InstanceFeedOptions {
  readonly db: Db;
  readonly intervalMs?: number;
  readonly logger: Logger;
}

/** What an instance reports about its queue counts for so long. */
const reportMaxAgeMs = 90_000;

type Counts = Map<string, number>;

const add = (counts: Counts, id: string, by: number): void => {
  counts.set(id, (counts.get(id) ?? 0) + by);
};

const freeSlots = ({ state, max_concurrency, held }: InstanceSnapshot): number =>
  state === 'up' || state === 'suspect' ? Math.max(0, max_concurrency - held) : 0;

export const createInstanceFeed = ({ db, intervalMs = 250, logger }: InstanceFeedOptions): InstanceFeed => {
  const rows = new Map<string, FeedRow>();
  const byName = new Map<string, Set<string>>();
  const bell = createReleaseBell();
  let polled: Pick<FeedPoll, 'horizon' | 'now_ms' | 'held'> = { horizon: '0', now_ms: 0, held: {} };
  /** Own claims and releases since the last poll began, and those of the poll that is under way. */
  let notes: Counts = new Map();
  let polledNotes: Counts = new Map();

  const toSnapshot = ({ reported_at_ms, ...row }: FeedRow): InstanceSnapshot => {
    const { instance_id, reported_extra } = row;
    const noted = (notes.get(instance_id) ?? 0) + (polledNotes.get(instance_id) ?? 0);
    const isFresh = reported_at_ms !== null && polled.now_ms - reported_at_ms <= reportMaxAgeMs;
    return {
      ...row,
      held: Math.max(0, (polled.held[instance_id] ?? 0) + noted),
      reported_extra: isFresh ? reported_extra : 0,
    };
  };

  const candidates = (capability: string): InstanceSnapshot[] =>
    [...(byName.get(capability) ?? [])].map((id) => toSnapshot(rows.get(id) as FeedRow));

  const measureRoom = (): Counts => {
    const room: Counts = new Map();
    for (const capability of bell.awaited()) {
      for (const snapshot of candidates(capability)) room.set(snapshot.instance_id, freeSlots(snapshot));
    }
    return room;
  };

  const ringWhereRoomGrew = (before: Counts): void => {
    for (const [id, free] of measureRoom()) {
      const row = rows.get(id);
      if (row !== undefined && free > (before.get(id) ?? 0)) bell.ring(row.name);
    }
  };

  const accept = ({ instances, ...poll }: FeedPoll): void => {
    const before = measureRoom();
    for (const row of instances) {
      rows.set(row.instance_id, row);
      byName.set(row.name, (byName.get(row.name) ?? new Set()).add(row.instance_id));
    }
    polled = poll;
    polledNotes = new Map();
    ringWhereRoomGrew(before);
  };

  const poll = async (): Promise<void> => {
    polledNotes = notes;
    notes = new Map();
    try {
      accept(await pollInstances(db, polled.horizon));
    } catch (error) {
      for (const [id, count] of polledNotes) add(notes, id, count);
      polledNotes = new Map();
      throw error;
    }
  };

  const loop = createPollLoop({
    poll,
    intervalMs,
    onError: (error) =>
      logger.warn({ error }, 'instances could not be polled; routing goes on with what is known'),
  });

  return {
    ...loop,
    candidates,
    noteClaim: (instanceId) => add(notes, instanceId, 1),
    noteRelease: (instanceId) => {
      add(notes, instanceId, -1);
      const row = rows.get(instanceId);
      if (row !== undefined) bell.ring(row.name);
    },
    waitForRelease: bell.wait,
  };
};
