/** Repeats a poll with a pause between, never two at once, and lets callers wait for one that begins later. */
export interface PollLoop {
  /** Resolves after the first poll, also when it failed. */
  start(): Promise<void>;
  /** Resolves when no poll is under way any more. */
  stop(): Promise<void>;
  /** Resolves after a poll that began after this call. @throws what the poll throws */
  refresh(): Promise<void>;
}

export function createPollLoop({
  poll,
  intervalMs,
  onError,
}: {
  readonly poll: () => Promise<void>;
  readonly intervalMs: number;
  readonly onError: (error: unknown) => void;
}): PollLoop {
  let running: Promise<void> | null = null;
  let next: Promise<void> | null = null;
  let timer: NodeJS.Timeout | null = null;
  let isStarted = false;

  const begin = (): Promise<void> => {
    running = poll().finally(() => {
      running = null;
    });
    return running;
  };

  const refresh = (): Promise<void> => {
    if (running === null) return begin();
    next ??= running
      .catch(() => undefined)
      .then(() => {
        next = null;
        return begin();
      });
    return next;
  };

  const repeat = async (): Promise<void> => {
    await refresh().catch(onError);
    if (isStarted) timer = setTimeout(repeat, intervalMs).unref();
  };

  return {
    refresh,
    start: () => {
      isStarted = true;
      return repeat();
    },
    stop: async () => {
      isStarted = false;
      if (timer !== null) clearTimeout(timer);
      await (next ?? running)?.catch(() => undefined);
    },
  };
}
