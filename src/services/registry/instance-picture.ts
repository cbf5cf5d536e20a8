/**
 * What a router knows about all instances: the last polls, corrected by its own claims and releases since. A note
 * counts until a poll that began after it has been accepted: that poll has counted it.
 */
import type { InstanceSnapshot } from '../../core/routing/types.ts';
import type { FeedPoll, FeedRow } from '../../db/instance-feed.ts';

export interface InstancePicture {
  candidates(capability: string): readonly InstanceSnapshot[];
  nameOf(instanceId: string): string | undefined;
  note(instanceId: string, by: 1 | -1): void;
  /** Where the next poll starts. */
  beginPoll(): string;
  acceptPoll(poll: FeedPoll): void;
  /** The poll that began failed: its notes count on. */
  dropPoll(): void;
}

/** What an instance reports about its queue counts for so long. */
const reportMaxAgeMs = 90_000;

type Counts = Map<string, number>;

const add = (counts: Counts, id: string, by: number): void => {
  counts.set(id, (counts.get(id) ?? 0) + by);
};

export const createInstancePicture = (): InstancePicture => {
  const rows = new Map<string, FeedRow>();
  const byName = new Map<string, Set<string>>();
  let polled: Pick<FeedPoll, 'horizon' | 'now_ms' | 'held'> = { horizon: '0', now_ms: 0, held: {} };
  let notes: Counts = new Map();
  let notesBeforePoll: Counts = new Map();

  const toSnapshot = ({ reported_at_ms, ...row }: FeedRow): InstanceSnapshot => {
    const { instance_id, reported_extra } = row;
    const noted = (notes.get(instance_id) ?? 0) + (notesBeforePoll.get(instance_id) ?? 0);
    const isFresh = reported_at_ms !== null && polled.now_ms - reported_at_ms <= reportMaxAgeMs;
    return {
      ...row,
      held: Math.max(0, (polled.held[instance_id] ?? 0) + noted),
      reported_extra: isFresh ? reported_extra : 0,
    };
  };

  return {
    candidates: (capability) =>
      [...(byName.get(capability) ?? [])].map((id) => toSnapshot(rows.get(id) as FeedRow)),
    nameOf: (instanceId) => rows.get(instanceId)?.name,
    note: (instanceId, by) => add(notes, instanceId, by),
    beginPoll: () => {
      notesBeforePoll = notes;
      notes = new Map();
      return polled.horizon;
    },
    acceptPoll: ({ instances, ...poll }) => {
      for (const row of instances) {
        rows.set(row.instance_id, row);
        byName.set(row.name, (byName.get(row.name) ?? new Set()).add(row.instance_id));
      }
      polled = poll;
      notesBeforePoll = new Map();
    },
    dropPoll: () => {
      for (const [id, count] of notesBeforePoll) add(notes, id, count);
      notesBeforePoll = new Map();
    },
  };
};
