/**
 * Virtual time, which passes only when no other work is left. The next due entry runs at once, and entries due at the
 * same moment run in the order of their registration. Nothing here reads a clock, so a run takes the same course every
 * time.
 */
import { type CancelSignal, onCancel } from '../cancellation.ts';

export interface VirtualTime {
  /** Unix time, ms. */
  now(): number;
  /** @returns a function that cancels the entry */
  at(moment: number, work: () => void): () => void;
  /** Resolves after the time, or as soon as it is cancelled. */
  sleep(ms: number, stop?: CancelSignal): Promise<void>;
  /** Lets time pass until `isOver`, or until no entry is left. */
  pass(isOver: () => boolean): Promise<void>;
}

interface Entry {
  readonly moment: number;
  readonly order: number;
  readonly work: () => void;
  isUndone: boolean;
}

/** Resolves when all consequences of the last event are done, before time passes. */
export type Settle = () => Promise<void>;

function settleInNode(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/**
 * @param start Unix time, ms
 * @param settle for environments without `setImmediate`, such as a browser
 */
export function createVirtualTime(start: number, settle: Settle = settleInNode): VirtualTime {
  let now = start;
  let order = 0;
  /** The earliest entry comes last. */
  const due: Entry[] = [];

  const add = (entry: Entry): void => {
    let low = 0;
    let high = due.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isBefore(entry, due[middle] as Entry)) low = middle + 1;
      else high = middle;
    }
    due.splice(low, 0, entry);
  };

  const at: VirtualTime['at'] = (moment, work) => {
    const entry: Entry = { moment: Math.max(moment, now), order: order++, work, isUndone: false };
    add(entry);
    return () => {
      entry.isUndone = true;
    };
  };

  return {
    now: () => now,
    at,
    sleep: (ms, stop) =>
      new Promise((resolve) => {
        if (stop === undefined) at(now + ms, resolve);
        else {
          const undo = at(now + ms, () => {
            stopListening();
            resolve();
          });
          const stopListening = onCancel(stop, () => {
            undo();
            resolve();
          });
        }
      }),
    pass: async (isOver) => {
      await settle();
      while (!isOver()) {
        const next = due.pop();
        if (next === undefined) return;
        if (next.isUndone) continue;
        now = next.moment;
        next.work();
        await settle();
      }
    },
  };
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.moment < b.moment || (a.moment === b.moment && a.order < b.order);
}
