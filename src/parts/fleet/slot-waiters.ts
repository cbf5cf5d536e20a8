/** The calls of this process that wait for a slot, and which of them a free slot wakes. */
import type { CancelSignal } from '@capstan/core/cancellation';
import { keyAt } from '@capstan/core/residency/residency';
import type { InstanceSnapshot } from '@capstan/core/routing/types';

export interface SlotWaiters {
  /** True when woken; false when the time is over or `signal` aborts. */
  wait(wish: SlotWish, timeoutMs: number, signal: CancelSignal): Promise<boolean>;
  /**
   * W5: of a line, the first call whose key is resident there, and one that others have passed for a second; without the
   * former, the first few, as some rather wait for another slot (W4).
   * @param instance where a slot became free; absent: anywhere, for all
   */
  wake(capability: string, instance?: InstanceSnapshot): void;
  /** The capabilities that calls wait for. */
  awaited(): Iterable<string>;
}

/** The slot that a call waits for. */
export interface SlotWish {
  readonly capability: string;
  /** Of calls that wait for the same slots. */
  readonly line: string;
  /** Of what it needs loaded; null: nothing. */
  readonly key: string | null;
  /** When it began to wait, on the clock of `performance.now()`. */
  readonly sinceMs: number;
}

interface WaitingCall extends SlotWish {
  readonly wake: () => void;
}

/** The longest that a call whose key is not resident is passed. */
const passedMs = 1_000;
/** Without a call whose key is resident. */
const mostWoken = 4;

function linesOf(group: Iterable<WaitingCall>): Iterable<readonly WaitingCall[]> {
  const lines = new Map<string, WaitingCall[]>();
  for (const waiter of group) {
    const line = lines.get(waiter.line);
    if (line === undefined) lines.set(waiter.line, [waiter]);
    else line.push(waiter);
  }
  return lines.values();
}

/** Those of a line to wake for a slot of an instance. */
function pickOf(line: readonly WaitingCall[], instance: InstanceSnapshot): readonly WaitingCall[] {
  const inOrder = line.toSorted((a, b) => a.sinceMs - b.sinceMs);
  const [first] = inOrder as [WaitingCall];
  const warm = inOrder.find(({ key }) => key !== null && instance.resident?.includes(keyAt(key, instance)));
  if (warm === undefined) return inOrder.slice(0, mostWoken);
  return warm !== first && performance.now() - first.sinceMs >= passedMs ? [first, warm] : [warm];
}

/** Those to wake. */
function pickAll(
  group: Iterable<WaitingCall>,
  instance: InstanceSnapshot | undefined,
): readonly WaitingCall[] {
  if (instance === undefined) return [...group];
  return [...linesOf(group)].flatMap((line) => pickOf(line, instance));
}

/** Wakes the calls that wait for a slot of a capability. */
export function createSlotWaiters(): SlotWaiters {
  const waiting = new Map<string, Set<WaitingCall>>();

  const leave = (waiter: WaitingCall): void => {
    const group = waiting.get(waiter.capability);
    group?.delete(waiter);
    if (group?.size === 0) waiting.delete(waiter.capability);
  };

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
      for (const { wake } of pickAll(waiting.get(capability) ?? [], instance)) wake();
    },
    awaited: () => waiting.keys(),
  };
}
