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

type BudgetFigure = 'limit_usd' | 'spent_usd' | 'reserved_usd';

/** A call that costs nothing always fits. */
export function hasRoomFor({ limit, ...used }: BudgetState, nano: bigint): boolean {
  return limit === null || nano === 0n || nano <= headroomOf({ limit, ...used });
}

/** The day of all projects shows no figures: they would tell one project what the others spend. */
function showFigures({ scope, limit, spent, reserved }: Shortage): Pick<BudgetRefusal, BudgetFigure> {
  if (scope === 'global') return {};
  return {
    limit_usd: fromNanoUsd(limit),
    spent_usd: fromNanoUsd(spent),
    reserved_usd: fromNanoUsd(reserved),
  };
}

export function toRefusal(shortage: Shortage, minimumUsd: number): BudgetRefusal {
  const { scope, runId, resetsAt } = shortage;
  return {
    scope,
    ...(runId === null ? {} : { run_id: runId }),
    ...showFigures(shortage),
    minimum_usd: minimumUsd,
    resets_at: resetsAt,
  };
}

/** `: limit 5 USD, spent 4, reserved 0.5`, or nothing of a budget whose figures are not shown. */
export function describeFigures({ limit_usd, spent_usd, reserved_usd }: BudgetRefusal): string {
  if (limit_usd === undefined) return '';
  return `: limit ${limit_usd} USD, spent ${spent_usd}, reserved ${reserved_usd}`;
}
