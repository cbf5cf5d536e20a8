/** The calls of this process that wait for a slot, and which of them a free slot wakes. */
import type { CancelSignal } from '@capstan/core/cancellation';
import type { InstanceSnapshot } from '@capstan/core/routing/types';

export interface SlotWaiters {
  /** True when woken; false when the time is over or `signal` aborts. */
  wait(wish: SlotWish, timeoutMs: number, signal: CancelSignal): Promise<boolean>;
  /** W5. @param instance where a slot became free; absent: anywhere */
  wake(capability: string, instance?: InstanceSnapshot): void;
  /** The capabilities that calls wait for. */
  awaited(): Iterable<string>;
}

/** The slot that a call waits for. */
export interface SlotWish {
  readonly capability: string;
  /** Of what it needs loaded. Default: nothing. */
  readonly key?: string | null;
}

interface WaitingCall extends SlotWish {
  readonly wake: () => void;
}

/** Wakes the calls that wait for a slot of a capability. */
export function createSlotWaiters(): SlotWaiters {
  const waiting = new Map<string, Set<WaitingCall>>();

  const leave = (waiter: WaitingCall): void => {
    const group = waiting.get(waiter.capability);
    group?.delete(waiter);
    if (group?.size === 0) waiting.delete(waiter.capability);
  };

  const findWarm = (group: readonly WaitingCall[], keys: readonly string[] = []): WaitingCall | undefined =>
    group.find(({ key }) => key != null && keys.includes(key));

  return {
    wait: (wish, timeoutMs, signal) =>
      new Promise((resolve) => {
        if (signal.aborted || timeoutMs <= 0) {
          resolve(false);
          return;
        }
        const end = (isWoken: boolean): void => {
          clearTimeout(timer);
          signal.removeEventListener('abort', giveUp);
          leave(waiter);
          resolve(isWoken);
        };
        const waiter: WaitingCall = { ...wish, wake: () => end(true) };
        const giveUp = (): void => end(false);
        const timer = setTimeout(giveUp, timeoutMs);
        signal.addEventListener('abort', giveUp);
        const { capability } = wish;
        waiting.set(capability, (waiting.get(capability) ?? new Set<WaitingCall>()).add(waiter));
      }),
    wake: (capability, instance) => {
      const group = [...(waiting.get(capability) ?? [])];
      const warm = findWarm(group, instance?.resident);
      for (const { wake } of warm === undefined ? group : [warm]) wake();
    },
    awaited: () => waiting.keys(),
  };
}
