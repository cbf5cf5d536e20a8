/** Calls under way in this process, so that it can stop without leaving one behind that is not settled. */
import { type CancelSignal, CancelSource, onCancel } from '../../core/cancellation.ts';

export interface OpenCalls {
  /** @param leaving stops when nobody wants the result any more: the call is cancelled. Null: it goes on */
  run<Result>(leaving: CancelSignal | null, work: (signal: CancelSignal) => Promise<Result>): Promise<Result>;
  /** Abandons what is under way; resolves when all of it has ended. */
  close(): Promise<void>;
}

export function createOpenCalls(): OpenCalls {
  const open = new Map<CancelSource, Promise<unknown>>();
  let isClosed = false;
  return {
    run: async (leaving, work) => {
      const own = new CancelSource();
      const stopListening = leaving === null ? null : onCancel(leaving, () => own.abort('cancelled'));
      if (isClosed) own.abort('abandoned');
      const task = work(own);
      open.set(own, task);
      try {
        return await task;
      } finally {
        open.delete(own);
        stopListening?.();
      }
    },
    close: async () => {
      isClosed = true;
      for (const own of open.keys()) own.abort('abandoned');
      await Promise.allSettled(open.values());
    },
  };
}
