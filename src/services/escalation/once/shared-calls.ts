/** One call for all who want the same at the same time in this process; it goes on until the last of them has left. */
import { type CancelSignal, CancelSource, onCancel } from '../../../core/cancellation.ts';

export interface SharedCalls<Result> {
  /** Joins the call under way, or begins it. @param begin its signal stops when everybody has left */
  join(key: string, signal: CancelSignal, begin: (stop: CancelSignal) => Promise<Result>): Promise<Result>;
}

interface SharedCall<Result> {
  readonly result: Promise<Result>;
  readonly stop: CancelSource<unknown>;
  callers: number;
}

export function createSharedCalls<Result>(): SharedCalls<Result> {
  const calls = new Map<string, SharedCall<Result>>();

  const forget = (key: string, stop: CancelSource<unknown>): void => {
    if (calls.get(key)?.stop === stop) calls.delete(key);
  };

  const launch = (key: string, begin: (stop: CancelSignal) => Promise<Result>): SharedCall<Result> => {
    const stop = new CancelSource<unknown>();
    const result = begin(stop).finally(() => forget(key, stop));
    const call = { result, stop, callers: 0 };
    calls.set(key, call);
    return call;
  };

  return {
    join: async (key, signal, begin) => {
      const call = calls.get(key) ?? launch(key, begin);
      call.callers += 1;
      const stay = onCancel(signal, () => {
        call.callers -= 1;
        if (call.callers > 0) return;
        forget(key, call.stop); // who comes now asks anew
        call.stop.abort(signal.reason);
      });
      try {
        return await call.result;
      } finally {
        stay();
      }
    },
  };
}
