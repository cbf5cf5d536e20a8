/** Wakes those who wait for room on a capability. */
import type { CancelSignal } from '../../../core/cancellation.ts';

export interface SlotWaiters {
  /** True when rung; false when the time is over or `signal` aborts. */
  wait(capability: string, timeoutMs: number, signal: CancelSignal): Promise<boolean>;
  wake(capability: string): void;
  /** Capabilities that somebody waits for. */
  awaited(): Iterable<string>;
}

export function createSlotWaiters(): SlotWaiters {
  const waiting = new Map<string, Set<() => void>>();

  const leave = (capability: string, wake: () => void): void => {
    const group = waiting.get(capability);
    group?.delete(wake);
    if (group?.size === 0) waiting.delete(capability);
  };

  return {
    wait: (capability, timeoutMs, signal) =>
      new Promise((resolve) => {
        if (signal.aborted || timeoutMs <= 0) {
          resolve(false);
          return;
        }
        const end = (isRung: boolean): void => {
          clearTimeout(timer);
          signal.removeEventListener('abort', giveUp);
          leave(capability, wake);
          resolve(isRung);
        };
        const wake = (): void => end(true);
        const giveUp = (): void => end(false);
        const timer = setTimeout(giveUp, timeoutMs);
        signal.addEventListener('abort', giveUp);
        waiting.set(capability, (waiting.get(capability) ?? new Set()).add(wake));
      }),
    wake: (capability) => {
      for (const wake of [...(waiting.get(capability) ?? [])]) wake();
    },
    awaited: () => waiting.keys(),
  };
}
