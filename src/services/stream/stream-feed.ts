/**
 * One poll of this process tells everybody who watches a project. It goes from one horizon of transactions to the next,
 * as the feed of a run's events does, so that nothing is missed: what is told is how a thing stands, at most once for
 * each poll, and every event of the runs that somebody looks at. Nobody watches: nothing is asked.
 */
import type { Logger } from 'pino';
import type { Db } from '../../db/connect.ts';
import { readHorizon } from '../../db/run/event.ts';
import type { ReadRunFrames } from './run-frames.ts';
import type { StreamPosition } from './stream-position.ts';
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
  readonly intervalMs: number;
  readonly logger: Logger;
}

async function standNow(db: Db): Promise<StreamPosition> {
  return { horizon: await readHorizon(db), at: new Date() };
}

export function createStreamFeed({ db, readRunFrames, intervalMs, logger }: StreamDependencies): StreamFeed {
  const watchers = new Set<StreamWatcher>();
  const reader = createRoundReader(db, readRunFrames);
  let position: StreamPosition | null = null;
  let timer: NodeJS.Timeout | null = null;
  let running: Promise<void> = Promise.resolve();

  const poll = async (): Promise<void> => {
    const round = await reader.read(position ?? (await standNow(db)), [...watchers]);
    position = round.position;
    for (const watcher of watchers) watcher.take(round);
  };
  const repeat = async (): Promise<void> => {
    running = poll();
    await running.catch((err: unknown) => logger.warn({ err }, 'a stream could not be fed; trying again'));
    timer = null;
    if (watchers.size > 0) return schedule();
    position = null;
    reader.forget();
  };
  const schedule = (): void => {
    timer ??= setTimeout(repeat, intervalMs).unref();
  };

  return {
    add: async (watcher) => {
      await reader.prepare(watcher.projectId);
      await running.catch(() => undefined); // which does not know this one, so what it finds is no news for it
      position ??= await standNow(db);
      watchers.add(watcher);
      schedule();
      return position;
    },
    remove: (watcher) => void watchers.delete(watcher),
    stop: () => {
      if (timer !== null) clearTimeout(timer);
      watchers.clear();
    },
  };
}
