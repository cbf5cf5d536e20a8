/**
 * The cost of one call, which an instance may declare by expressions over the input. The worst case lowers the
 * reservation below the declared price, and never raises it. An expression that yields no amount for an input changes
 * nothing: the declared price holds, and the decision shows the fault.
 */
import type { CostOfInput } from '../money/cost-expressions.ts';
import { hasOverrunOften } from '../money/overruns.ts';
import { createRouteFilter, excludeByRoute } from './filter.ts';
import { type CallBound, type InstanceSnapshot, type RouteRequest, speaks } from './types.ts';

/** Whether the cost of a call depends on its input. */
export function isDeclaring({ worst_case, expected_cost, rate_usd }: InstanceSnapshot): boolean {
  return rate_usd > 0 && (worst_case != null || expected_cost != null);
}

interface Declaring {
  /** The instances whose cost depends on the input; absent: none. */
  readonly declaring?: readonly InstanceSnapshot[] | undefined;
}

interface PriceCaller {
  /** Null: a run outside of Capstan. */
  readonly projectId: string | null;
  readonly nowMs: number;
}

/** The cost of a call for instances that speak the protocol of its client, and get another input. */
export interface NativeCost {
  readonly protocol: string;
  readonly costOf: CostOfInput;
}

/** The instances that count for a call. */
type BoundRoute = PriceCaller &
  Pick<RouteRequest, 'versionRange' | 'tags' | 'ruledOut'> & { readonly native?: NativeCost | undefined };

/**
 * The bounds of those that the route leaves in, and that were vetted: only they may take the call.
 * @param costOf null: the input is unknown
 */
export function boundsOf(
  { declaring }: Declaring,
  costOf: CostOfInput | null,
  route: BoundRoute,
): RouteRequest['bounds'] {
  if (declaring === undefined || costOf === null) return undefined;
  const filter = createRouteFilter(route);
  const bounds = new Map<string, CallBound>();
  for (const instance of declaring) {
    const { instance_id, spec_digest } = instance;
    const isLeftIn = spec_digest !== null && !route.ruledOut.has(instance_id);
    if (isLeftIn && excludeByRoute(instance, filter) === null)
      bounds.set(instance_id, boundOf(instance, costFor(instance, costOf, route), route));
  }
  return bounds;
}

function costFor(instance: InstanceSnapshot, costOf: CostOfInput, { native }: BoundRoute): CostOfInput {
  return native !== undefined && speaks(instance, native.protocol) ? native.costOf : costOf;
}

function boundOf(
  instance: InstanceSnapshot,
  costOf: CostOfInput,
  { projectId, nowMs }: PriceCaller,
): CallBound {
  const { worst_case, expected_cost, settle, mean_cost_usd, overran } = instance;
  const expected = expected_cost == null ? null : costOf(expected_cost);
  const meanUsd = settle === 'reported' ? mean_cost_usd : null;
  const expectedUsd = typeof expected === 'number' ? expected : meanUsd;
  if (worst_case == null) return { worstUsd: null, expectedUsd };
  if (projectId !== null && hasOverrunOften(overran?.[projectId], nowMs)) {
    return { worstUsd: null, expectedUsd, fault: 'three calls cost more than it within an hour' };
  }
  const worst = costOf(worst_case);
  return typeof worst === 'number'
    ? { worstUsd: worst, expectedUsd }
    : { worstUsd: null, expectedUsd, fault: worst.fault };
}
