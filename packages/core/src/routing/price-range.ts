/**
 * The possible cost of a call on any instance: from the cheapest that could take it to the largest reservation,
 * including instances that may take it only later.
 *
 * Also computes the daily budgets' headroom for a planned call.
 */
import type { Verdict } from '../contracts/decision.ts';
import { fromNanoUsd } from '../money/nano-usd.ts';
import { expectedCost, likelyCost, worstCaseNano } from './estimate.ts';
import { createFilter, excludeInstance } from './filter.ts';
import type { InstanceSnapshot, RouteRequest } from './types.ts';

interface PriceRange {
  /** The minimum cost on any of them, USD; 0 for an instance that reports the cost of its calls. */
  readonly leastUsd: number;
  /** The lowest likely cost on any of them, USD. */
  readonly likelyUsd: number;
  /** The largest reservation on any of them, nano-USD. */
  readonly mostNano: bigint;
}

/** Temporary reasons: the instance may take the call later. */
const passing: ReadonlySet<Verdict> = new Set(['down', 'breaker_open', 'over_budget']);

/** If no instance can take the call now, the cheapest is one that may later. @returns null = no instance */
export function findPriceRange(
  instances: readonly InstanceSnapshot[],
  request: RouteRequest,
): PriceRange | null {
  const filter = createFilter(request);
  let now: PriceRange | null = null;
  let ever: PriceRange | null = null;
  for (const instance of instances) {
    const costUsd = expectedCost(instance, request);
    const verdict = excludeInstance(instance, filter, costUsd);
    if (verdict !== null && !passing.has(verdict)) continue;
    const price = {
      leastUsd: instance.settle === 'reported' ? 0 : costUsd,
      likelyUsd: likelyCost(instance, request, costUsd),
      mostNano: worstCaseNano(instance, request),
    };
    if (verdict === null) now = widen(now, price);
    ever = widen(ever, price);
  }
  return now === null || ever === null ? ever : { ...now, mostNano: ever.mostNano };
}

function widen(range: PriceRange | null, price: PriceRange): PriceRange {
  return range === null
    ? price
    : {
        leastUsd: Math.min(range.leastUsd, price.leastUsd),
        likelyUsd: Math.min(range.likelyUsd, price.likelyUsd),
        mostNano: range.mostNano > price.mostNano ? range.mostNano : price.mostNano,
      };
}

export type Headroom = Pick<RouteRequest, 'headroomUsd' | 'hidesHeadroom'>;

interface BudgetsLeft {
  /** Nano-USD; null = no limit. */
  readonly project_nano: string | null;
  readonly global_nano: string | null;
}

/** The tighter one counts. Its figure is hidden when all projects share it. */
export function toHeadroom({ project_nano, global_nano }: BudgetsLeft): Headroom {
  const [own, shared] = [project_nano, global_nano].map((nano) => (nano === null ? null : BigInt(nano)));
  const isShared = shared != null && (own == null || shared < own);
  const least = isShared ? shared : own;
  if (least == null) return { headroomUsd: null };
  return { headroomUsd: Math.max(0, fromNanoUsd(least)), hidesHeadroom: isShared };
}
