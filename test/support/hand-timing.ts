import type { Timing } from '../../src/parts/feeds/follow-poll.ts';

export interface HandTiming extends Timing {
  /** Advances to the next due timer, as soon as there is one, and runs it. @returns the time advanced */
  goOn(): Promise<number>;
  /** Whether a timer is pending. */
  isWaiting(): boolean;
}

/** A clock that advances only by a test's call. */
export function createHandTiming(): HandTiming {
  const due: { readonly at: number; readonly run: () => void }[] = [];
  let now = 0;
  let notice: () => void = () => undefined;
  return {
    now: () => now,
    after: (ms, run) => {
      const entry = { at: now + ms, run };
      due.push(entry);
      due.sort((one, other) => one.at - other.at);
      notice();
      return () => {
        if (due.includes(entry)) due.splice(due.indexOf(entry), 1);
      };
    },
    goOn: async () => {
      const startedAt = now;
      for (;;) {
        const next = due.shift();
        if (next !== undefined) {
          now = Math.max(now, next.at);
          next.run();
          return now - startedAt;
        }
        await new Promise<void>((resolve) => {
          notice = resolve;
        });
      }
    },
    isWaiting: () => due.length > 0,
  };
}
