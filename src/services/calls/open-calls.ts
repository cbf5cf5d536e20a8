/** Calls under way in this process, so that it can stop without leaving one behind that is not settled. */
export interface OpenCalls {
  /** @param leaving aborts when nobody wants the result any more: the call is cancelled. Null: it goes on */
  run<Result>(leaving: AbortSignal | null, work: (signal: AbortSignal) => Promise<Result>): Promise<Result>;
  /** Abandons what is under way; resolves when all of it has ended. */
  close(): Promise<void>;
}

export const createOpenCalls = (): OpenCalls => {
  const open = new Map<AbortController, Promise<unknown>>();
  let isClosed = false;
  return {
    run: async (leaving, work) => {
      const own = new AbortController();
      const cancel = (): void => own.abort('cancelled');
      leaving?.addEventListener('abort', cancel, { once: true });
      if (leaving?.aborted) cancel();
      if (isClosed) own.abort('abandoned');
      const task = work(own.signal);
      open.set(own, task);
      try {
        return await task;
      } finally {
        open.delete(own);
        leaving?.removeEventListener('abort', cancel);
      }
    },
    close: async () => {
      isClosed = true;
      for (const own of open.keys()) own.abort('abandoned');
      await Promise.allSettled(open.values());
    },
  };
};
