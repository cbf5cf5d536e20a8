/**
 * The reservation of a call before it is made, and its cost at the end. Rates are snapshots of the claim.
 *
 * B1, the rule of a budget, in nano-USD: a call is admitted if its worst case fits into the limit beside spent and
 * reserved. While it is open, its budgets reserve its highest cost: the worst case, and the risk that this is too low.
 * So the worst cases of all calls in flight may be wrong, and spent exceeds the limit by the risk of one call at most.
 * The router uses the rule to rule out calls that cannot fit. The claim checks again in the database, under a lock, and
 * that check decides.
 */
import type { CostModel } from '../contracts/capability.ts';
import type { BudgetRefusal } from '../contracts/money.ts';
import { fromNanoUsd, scaleUp, toNanoUsd } from './nano-usd.ts';

export interface Price {
  readonly cost_type: CostModel['type'];
  /** USD per second or per call. */
  readonly rate_usd: number;
}

/** A rate has 12 decimals and time 9, so their product counts 1e-21 USD. */
const partsPerNano = 10n ** 12n;

/** `ceil(rate × ms / 1000)` to the nano-USD. */
function perSecond(rateUsd: number, durationMs: number): bigint {
  const product = scaleUp(rateUsd, 12) * scaleUp(durationMs, 6);
  return (product + partsPerNano - 1n) / partsPerNano;
}

/** The maximum cost of a call: its price when it uses its whole timeout. */
export function worstCase({ cost_type, rate_usd }: Price, timeoutMs: number): bigint {
  return cost_type === 'per_call' ? toNanoUsd(rate_usd) : perSecond(rate_usd, timeoutMs);
}

/** How an attempt ended, for billing. */
export type Settlement =
  /** The instance answered with success. */
  | 'answered'
  /** The instance ran and failed: time is charged, a call is not, unless the instance reports what it cost. */
  | 'failed'
  /** The instance has done work and did not complete it: what it reports is charged, else the most that it can be. */
  | 'broken_off'
  /** The instance never got the request, or refused it unread. */
  | 'not_sent'
  /** The instance may have completed the call; the outcome is unknown. */
  | 'lost';

interface CallFacts {
  readonly durationMs: number;
  readonly reserved: bigint;
  readonly risk: bigint;
  /** The most that a call without a known end can have cost. Default: what it reserved. */
  readonly most?: bigint | undefined;
  /** The instance reports its costs, so that a call without a report has an unknown one. */
  readonly reports: boolean;
  /** The cost that the instance reports; anything but a number of at least 0 = no report. */
  readonly reportedUsd: unknown;
}

/**
 * Settles a call. A cost that is known exceeds the reservation by the risk at most: that is an overrun. Without a
 * report, a price per call is the reservation at most, and an estimate if the instance should have reported one.
 * @returns the amount in nano-USD, and whether it is known or assumed
 */
export function settle(
  price: Price,
  settlement: Settlement,
  { durationMs, reserved, risk, most = reserved, reports, reportedUsd }: CallFacts,
): { readonly amount: bigint; readonly certainty: 'exact' | 'estimated' } {
  if (settlement === 'not_sent') return { amount: 0n, certainty: 'exact' };
  if (settlement === 'lost') return { amount: most, certainty: 'estimated' };
  if (price.rate_usd === 0) return { amount: 0n, certainty: 'exact' };
  const known = isAmount(reportedUsd)
    ? toNanoUsd(reportedUsd)
    : price.cost_type === 'per_second'
      ? perSecond(price.rate_usd, durationMs)
      : null;
  if (known !== null) return { amount: least(known, reserved + risk), certainty: 'exact' };
  if (settlement === 'failed') return { amount: 0n, certainty: 'exact' };
  if (settlement === 'broken_off') return { amount: most, certainty: 'estimated' };
  const amount = least(toNanoUsd(price.rate_usd), reserved);
  return { amount, certainty: reports ? 'estimated' : 'exact' };
}

function least(one: bigint, other: bigint): bigint {
  return one < other ? one : other;
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

interface BudgetState {
  /** Null = none. */
  readonly limit: bigint | null;
  readonly spent: bigint;
  readonly reserved: bigint;
}

/** A budget that refused a reservation. */
export interface Shortage extends BudgetState {
  readonly limit: bigint;
  readonly scope: Exclude<BudgetRefusal['scope'], 'call'>;
  /** For a run's budget: the run of the call, or a run above it. */
  readonly runId: string | null;
  /** For a scoped budget: its scope and period. */
  readonly scoped?: Pick<BudgetRefusal, 'budget' | 'period'>;
  /** RFC 3339; null = it never resets. */
  readonly resetsAt: string | null;
}

/** The amount that a limited budget still lets a call reserve. */
export function headroomOf({ limit, spent, reserved }: BudgetState & { readonly limit: bigint }): bigint {
  const left = limit - spent - reserved;
  return left > 0n ? left : 0n;
}

type BudgetFigure = 'limit_usd' | 'spent_usd' | 'reserved_usd';

/** A free call always fits. */
export function hasRoomFor({ limit, ...used }: BudgetState, nano: bigint): boolean {
  return limit === null || nano === 0n || nano <= headroomOf({ limit, ...used });
}

/** The daily budget of all projects shows no figures: they would show one project the spending of the others. */
function showFigures({ scope, limit, spent, reserved }: Shortage): Pick<BudgetRefusal, BudgetFigure> {
  if (scope === 'global') return {};
  return {
    limit_usd: fromNanoUsd(limit),
    spent_usd: fromNanoUsd(spent),
    reserved_usd: fromNanoUsd(reserved),
  };
}

export function toRefusal(shortage: Shortage, minimumUsd: number): BudgetRefusal {
  const { scope, runId, scoped, resetsAt } = shortage;
  return {
    scope,
    ...scoped,
    ...(runId === null ? {} : { run_id: runId }),
    ...showFigures(shortage),
    minimum_usd: minimumUsd,
    resets_at: resetsAt,
  };
}

/**
 * The lowest limit under which so many calls fit beside the spent and reserved amounts; null for a budget with hidden
 * figures.
 */
export function limitFor(
  { spent_usd, reserved_usd, minimum_usd }: Pick<BudgetRefusal, BudgetFigure | 'minimum_usd'>,
  calls: number,
): number | null {
  if (spent_usd === undefined || reserved_usd === undefined) return null;
  const used = toNanoUsd(spent_usd) + toNanoUsd(reserved_usd);
  return fromNanoUsd(used + BigInt(calls) * toNanoUsd(minimum_usd));
}

/** `: limit 5 USD, spent 4, reserved 0.5`; empty for a budget with hidden figures. */
export function describeFigures({ limit_usd, spent_usd, reserved_usd }: BudgetRefusal): string {
  if (limit_usd === undefined) return '';
  return `: limit ${limit_usd} USD, spent ${spent_usd}, reserved ${reserved_usd}`;
}
