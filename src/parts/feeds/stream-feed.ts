/**
 * One poll of this process feeds all watchers of projects. It goes from one horizon of transactions to the next, as the
 * feed of a run's events does, so that nothing is missed: a watcher gets the state of a thing at most once for each
 * poll, and every event of the runs that it watches. Without a watcher there is no poll.
 */

import type { StreamFrame, StreamTopic } from '@capstan/core/contracts/event';
import type { Db } from '../../db/connect.ts';
import type { InstanceRow } from '../../db/instance/instance.ts';
import { type listNewEvents, readHorizon } from '../../db/run/event.ts';
import type { PartBase } from '../part.ts';
import { createFollowPoll, realTiming, type Timing } from './follow-poll.ts';

/**
 * The position of a stream: it has sent all states at one horizon of transactions, and every event that was committed
 * before a second horizon, which may be later. The time of the first horizon finds rows without a transaction id, and
 * shows when a position is too old to resume from.
 */
export interface StreamPosition {
  readonly horizon: string;
  readonly at: Date;
  readonly events: string;
}

/** A watcher that returns later than this reads everything again. */
const longestMs = 3_600_000;

const form = /^(\d{1,20})\.(\d{1,14})\.(\d{1,20})$/;

export function positionAt(horizon: string, at: Date): StreamPosition {
  return { horizon, at, events: horizon };
}

export function writePosition({ horizon, at, events }: StreamPosition): string {
  return `${horizon}.${at.getTime()}.${events}`;
}

/** Null when it is invalid, too old, or of another database. @param now the last of all positions */
export function readPosition(text: string, now: StreamPosition): StreamPosition | null {
  const [, horizon, ms, events] = form.exec(text) ?? [];
  if (horizon === undefined || ms === undefined || events === undefined) return null;
  const position = { horizon, at: new Date(Number(ms)), events };
  const isNear = now.at.getTime() - position.at.getTime() <= longestMs;
  const isKnown = [horizon, events].every((known) => BigInt(known) <= BigInt(now.horizon));
  return isNear && isKnown ? position : null;
}

function lesser(one: string, other: string): string {
  return BigInt(one) <= BigInt(other) ? one : other;
}

/** @returns the position that both have reached */
export function earlierOf(one: StreamPosition, other: StreamPosition): StreamPosition {
  const [first, second] = BigInt(one.horizon) <= BigInt(other.horizon) ? [one, other] : [other, one];
  return { ...first, events: lesser(first.events, second.events) };
}

export type NewEvents = Awaited<ReturnType<typeof listNewEvents>>;

export interface StreamRound {
  readonly position: StreamPosition;
  /** The new events of the watched runs. */
  readonly events: NewEvents;
  /** Of all projects. */
  readonly instances: readonly InstanceRow[];
  readonly ofProject: ReadonlyMap<string, readonly StreamFrame[]>;
}

export interface StreamWatcher {
  readonly projectId: string;
  readonly topics: ReadonlySet<StreamTopic>;
  /** The runs whose every event is wanted. */
  readonly runIds: readonly string[];
  readonly take: (round: StreamRound) => void;
}

export interface RoundReader {
  /** Reads the present state before the first poll of a project, which then sends differences only. */
  prepare(projectId: string): Promise<void>;
  read(before: StreamPosition, watchers: readonly StreamWatcher[]): Promise<StreamRound>;
  /** Forgets all states, when the last watcher has left. */
  forget(): void;
}

export interface StreamFeed {
  /** @returns the position of the first poll for the watcher */
  add(watcher: StreamWatcher): Promise<StreamPosition>;
  remove(watcher: StreamWatcher): void;
  close(): void;
}

async function standNow(db: Db): Promise<StreamPosition> {
  return positionAt(await readHorizon(db), new Date());
}

interface FeedParts extends PartBase {
  /** @param now milliseconds of a monotonic clock */
  readonly createReader: (now: () => number) => RoundReader;
}

export function createStreamFeed(parts: FeedParts, timing: Timing = realTiming): StreamFeed {
  const { db, logger, createReader } = parts;
  const watchers = new Set<StreamWatcher>();
  const reader = createReader(timing.now);
  let position: StreamPosition | null = null;
  let running: Promise<boolean> = Promise.resolve(false);

  const poll = async (): Promise<boolean> => {
    const round = await reader.read(position ?? (await standNow(db)), [...watchers]);
    position = round.position;
    for (const watcher of watchers) watcher.take(round);
    return round.events.length > 0;
  };
  const rounds = createFollowPoll({
    poll: () => (running = poll()),
    isFollowed: () => watchers.size > 0,
    onRest: () => {
      position = null;
      reader.forget();
    },
    onError: (err) => logger.warn({ err }, 'events could not be sent to a stream; retrying'),
    timing,
  });

  return {
    add: async (watcher) => {
      await reader.prepare(watcher.projectId);
      await running.catch(() => undefined); // it does not know this watcher, so its findings are not for it
      position ??= await standNow(db);
      watchers.add(watcher);
      rounds.quicken();
      return position;
    },
    remove: (watcher) => void watchers.delete(watcher),
    close: () => {
      rounds.stop();
      watchers.clear();
    },
  };
}
