/** What a call reserves before it is made, and what it costs once it ended. Rates are snapshots of the claim. */
import type { CostModel } from '../../contracts/capability.ts';
import { scaleUp, toNanoUsd } from './nano-usd.ts';

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

/** The most that a call may cost: its price when it takes all the time it is allowed. */
export function worstCase({ cost_type, rate_usd }: Price, timeoutMs: number): bigint {
  return cost_type === 'per_call' ? toNanoUsd(rate_usd) : perSecond(rate_usd, timeoutMs);
}

/** How an attempt ended, as far as money goes. */
export type Settlement =
  /** It answered with success. */
  | 'answered'
  /** It worked and failed: time is paid, a call is not. */
  | 'failed'
  /** It never got the request, or refused it unread. */
  | 'not_sent'
  /** It may have worked to the end; nobody knows. */
  | 'lost';

export interface CallFacts {
  readonly durationMs: number;
  readonly reserved: bigint;
  /** What the instance says that the call cost; not a number of at least 0 = it says nothing. */
  readonly reportedUsd: unknown;
}

/** @returns the amount in nano-USD and whether it is known or assumed; never more than the reservation */
export function settle(
  price: Price,
  settlement: Settlement,
  { durationMs, reserved, reportedUsd }: CallFacts,
): { readonly amount: bigint; readonly certainty: 'exact' | 'estimated' } {
  if (settlement === 'not_sent') return { amount: 0n, certainty: 'exact' };
  if (settlement === 'lost') return { amount: reserved, certainty: 'estimated' };
  if (price.rate_usd === 0 || (price.cost_type === 'per_call' && settlement === 'failed')) {
    return { amount: 0n, certainty: 'exact' };
  }
  const amount = isAmount(reportedUsd)
    ? toNanoUsd(reportedUsd)
    : price.cost_type === 'per_call'
      ? toNanoUsd(price.rate_usd)
      : perSecond(price.rate_usd, durationMs);
  return { amount: amount < reserved ? amount : reserved, certainty: 'exact' };
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
