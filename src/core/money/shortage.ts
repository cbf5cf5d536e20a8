/**
 * The rule of a budget, in nano-USD: what was spent and what is reserved stay within the limit. Before a call the router
 * rules out by it what cannot fit; the claim counts again, under a lock, in the database, and that count decides.
 */
import type { BudgetRefusal } from '../../contracts/money.ts';
import { fromNanoUsd } from './nano-usd.ts';

export interface BudgetState {
  /** Null = none. */
  readonly limit: bigint | null;
  readonly spent: bigint;
  readonly reserved: bigint;
}

/** A budget that refused a reservation. */
export interface Shortage extends BudgetState {
  readonly limit: bigint;
  readonly scope: Exclude<BudgetRefusal['scope'], 'call'>;
  /** The run of the call, or one above it, where the scope is a run's. */
  readonly runId: string | null;
  /** RFC 3339; null = never by itself. */
  readonly resetsAt: string | null;
}

/** What a budget with a limit still lets a call reserve. */
export function headroomOf({ limit, spent, reserved }: BudgetState & { readonly limit: bigint }): bigint {
  const left = limit - spent - reserved;
  return left > 0n ? left : 0n;
}

/** A call that costs nothing always fits. */
export function hasRoomFor({ limit, ...used }: BudgetState, nano: bigint): boolean {
  return limit === null || nano === 0n || nano <= headroomOf({ limit, ...used });
}

export function toRefusal({ scope, runId, resetsAt, ...nano }: Shortage, minimumUsd: number): BudgetRefusal {
  return {
    scope,
    ...(runId === null ? {} : { run_id: runId }),
    limit_usd: fromNanoUsd(nano.limit),
    spent_usd: fromNanoUsd(nano.spent),
    reserved_usd: fromNanoUsd(nano.reserved),
    minimum_usd: minimumUsd,
    resets_at: resetsAt,
  };
}
