/**
 * The money of a run against mocks: each call reserves the most that it can cost, and settles for what it did, in its
 * run and in those above it.
 */
import { fromNanoUsd, toNanoUsd } from '../core/money/nano-usd.ts';
import { hasRoomFor, type Shortage } from '../core/money/reservation.ts';
import { lowestCeiling } from '../core/routing/estimate.ts';

export interface RunBudget {
  /** @returns why not; null = it is reserved */
  reserve(nano: bigint): Shortage | null;
  settle(reserved: bigint, amount: bigint): void;
  /** @param ceilingUsd null = none */
  raise(ceilingUsd: number | null): void;
  /** Listens for a raise of the run's own ceiling, or of one above it. */
  onRaise(listener: () => void): void;
  /** The one that refused last: its own, or that of a run above. */
  scarce(): RunBudget;
  /** The lowest of its own and those above. */
  ceilingUsd(): number | null;
  spentUsd(): number;
  spentNano(): bigint;
}

/** @param above of the run whose step started it; null = none */
export function createRunBudget(ceilingUsd: number | null, above: RunBudget | null): RunBudget {
  let ceiling = ceilingUsd;
  let spent = 0n;
  let reserved = 0n;
  let isOwnScarce = true;
  const listeners: (() => void)[] = [];
  const budget: RunBudget = {
    reserve: (nano) => {
      const limit = ceiling === null ? null : toNanoUsd(ceiling);
      isOwnScarce = !hasRoomFor({ limit, spent, reserved }, nano);
      if (limit !== null && isOwnScarce) {
        return { scope: 'run', runId: null, limit, spent, reserved, resetsAt: null };
      }
      const refusal = above?.reserve(nano) ?? null;
      if (refusal === null) reserved += nano;
      return refusal;
    },
    settle: (held, amount) => {
      reserved -= held;
      spent += amount;
      above?.settle(held, amount);
    },
    raise: (usd) => {
      ceiling = usd;
      for (const listener of listeners) listener();
    },
    onRaise: (listener) => {
      listeners.push(listener);
      above?.onRaise(listener);
    },
    scarce: () => (isOwnScarce || above === null ? budget : above.scarce()),
    ceilingUsd: () => lowestCeiling(ceiling, above?.ceilingUsd() ?? null),
    spentUsd: () => fromNanoUsd(spent),
    spentNano: () => spent,
  };
  return budget;
}
