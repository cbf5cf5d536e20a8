/**
 * One poll of this process tells everybody who watches a project. It goes from one horizon of transactions to the next,
 * as the feed of a run's events does, so that nothing is missed: what is told is how a thing stands, at most once for
 * each poll, and every event of the runs that somebody looks at. Nobody watches: nothing is asked.
 */
import type { Logger } from 'pino';
import type { Db } from '../../db/connect.ts';
import { readHorizon } from '../../db/run/event.ts';
import { createFollowPoll, realTiming, type Timing } from '../delivery/follow-poll.ts';
import type { ReadRunFrames } from './run-frames.ts';
import { positionAt, type StreamPosition } from './stream-position.ts';
import { createRoundReader, type StreamWatcher } from './stream-round.ts';

export interface StreamFeed {
  /** @returns where the first round begins that the watcher is given */
  add(watcher: StreamWatcher): Promise<StreamPosition>;
  remove(watcher: StreamWatcher): void;
  stop(): void;
}

export interface StreamDependencies {
  readonly db: Db;
  readonly readRunFrames: ReadRunFrames;
  readonly logger: Logger;
  readonly timing?: Timing;
}

async function standNow(db: Db): Promise<StreamPosition> {
  return positionAt(await readHorizon(db), new Date());
}

export function createStreamFeed(dependencies: StreamDependencies): StreamFeed {
  const { db, readRunFrames, logger, timing = realTiming } = dependencies;
  const watchers = new Set<StreamWatcher>();
  const reader = createRoundReader(db, readRunFrames, timing.now);
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
    onError: (err) => logger.warn({ err }, 'a stream could not be fed; trying again'),
    timing,
  });

  return {
    add: async (watcher) => {
      await reader.prepare(watcher.projectId);
      await running.catch(() => undefined); // which does not know this one, so what it finds is no news for it
      position ??= await standNow(db);
      watchers.add(watcher);
      rounds.quicken();
      return position;
    },
    remove: (watcher) => void watchers.delete(watcher),
    stop: () => {
      rounds.stop();
      watchers.clear();
    },
  };
}
