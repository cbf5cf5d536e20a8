/**
 * Polls for followers: often while there is news, rarely while there is none, and not at all without a follower. Polls
 * never overlap.
 */
import { pauseAfter, shortestPauseMs } from '@capstan/core/pacing';

export interface Timing {
  /** Milliseconds of a monotonic clock. */
  now(): number;
  /** @returns removes the follower */
  after(ms: number, run: () => void): () => void;
}

export const realTiming: Timing = {
  now: () => performance.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms).unref();
    return () => clearTimeout(timer);
  },
};

export interface FollowPoll {
  /** Brings the next poll forward, for a new follower. */
  quicken(): void;
  stop(): void;
}

export interface FollowPollOptions {
  /** One poll. @returns whether it had news for followers */
  readonly poll: () => Promise<boolean>;
  readonly isFollowed: () => boolean;
  readonly onError: (error: unknown) => void;
  /** The last follower has left. */
  readonly onRest?: () => void;
  readonly timing?: Timing;
}

interface DueRound {
  readonly dueAt: number;
  readonly cancel: () => void;
}

export function createFollowPoll(options: FollowPollOptions): FollowPoll {
  const { poll, isFollowed, onError, onRest, timing = realTiming } = options;
  let pending: DueRound | null = null;
  let isBusy = false;
  let isStopped = false;
  let newsAt = timing.now();

  const schedule = (pauseMs: number): void => {
    pending?.cancel();
    pending = { dueAt: timing.now() + pauseMs, cancel: timing.after(pauseMs, () => void repeat()) };
  };
  const repeat = async (): Promise<void> => {
    pending = null;
    if (!isFollowed()) return onRest?.();
    isBusy = true;
    const startedAt = timing.now();
    try {
      if (await poll()) newsAt = timing.now();
    } catch (error) {
      onError(error);
    }
    isBusy = false;
    const endedAt = timing.now();
    if (!isStopped) schedule(pauseAfter(endedAt - newsAt, endedAt - startedAt));
  };

  return {
    quicken: () => {
      newsAt = timing.now();
      const isSoon = pending !== null && pending.dueAt <= newsAt + shortestPauseMs;
      if (!isBusy && !isSoon) schedule(shortestPauseMs);
    },
    stop: () => {
      isStopped = true;
      pending?.cancel();
    },
  };
}
