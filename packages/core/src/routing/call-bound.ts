/**
 * The cost of one call, which an instance may declare by expressions over the input. The worst case lowers the
 * reservation below the declared price, and never raises it. An expression that yields no amount for an input changes
 * nothing: the declared price holds, and the decision shows the fault.
 */
import type { CostOfInput } from '../money/cost-expressions.ts';
import { certainty, expectCost } from '../money/holds.ts';
import { hasOverrunOften } from '../money/overruns.ts';
import { holdTerms, type Limits, worstCaseNano } from './estimate.ts';
import { createRouteFilter, excludeByRoute } from './filter.ts';
import { type CallBound, type Growth, type InstanceSnapshot, type RouteRequest, speaks } from './types.ts';

/** Whether the cost of a call depends on its input. */
export function isDeclaring(instance: InstanceSnapshot): boolean {
  const { worst_case, expected_cost, rate_usd } = instance;
  return rate_usd > 0 && (worst_case != null || expected_cost != null || mayGrow(instance));
}

/** Whether it can be stopped, and its cost is known on the way. */
function mayGrow({ stops = false, cost_type, token_cost, settle }: InstanceSnapshot): boolean {
  const isKnown = cost_type === 'per_second' || (token_cost != null && settle === 'reported');
  return stops && isKnown;
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
  Pick<RouteRequest, 'versionRange' | 'tags' | 'ruledOut' | 'onBudget' | Exclude<keyof Limits, 'bounds'>> & {
    readonly native?: NativeCost | undefined;
  };

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

function boundOf(instance: InstanceSnapshot, costOf: CostOfInput, route: BoundRoute): CallBound {
  const bound = worstOf(instance, costOf, route);
  const growth = bound.fault === undefined ? growthOf(instance, costOf, { bound, route }) : undefined;
  if (growth === undefined) return bound;
  const meanUsd = isHeldWhole(route) ? undefined : growth.expected?.meanUsd;
  return { ...bound, expectedUsd: bound.expectedUsd ?? meanUsd ?? null, growth };
}

function isHeldWhole({ onBudget = 'refuse' }: Pick<BoundRoute, 'onBudget'>): boolean {
  return onBudget === 'refuse';
}

/** The growth of a call, with what is expected of it: also where its caller wants its worst case held, for `what if`. */
function growthOf(
  instance: InstanceSnapshot,
  costOf: CostOfInput,
  { bound, route }: { readonly bound: CallBound; readonly route: BoundRoute },
): Growth | undefined {
  if (!mayGrow(instance)) return undefined;
  const { token_cost, start_cost, lengths, instance_id } = instance;
  const isTimed = instance.cost_type === 'per_second';
  const start = isTimed || start_cost == null ? 0 : costOf(start_cost);
  const unitUsd = isTimed ? instance.rate_usd / 1_000 : costOf(token_cost as string);
  if (typeof start !== 'number' || typeof unitUsd !== 'number') return undefined;
  const growth: Growth = { unit: isTimed ? 'ms' : 'token', startUsd: start, unitUsd };
  if (lengths == null) return growth;
  const terms = holdTerms(
    growth,
    worstCaseNano(instance, { ...route, bounds: new Map([[instance_id, bound]]) }),
    instance,
  );
  const { mean, variance } = expectCost(terms, lengths, 0);
  const deviation = Math.sqrt(variance);
  if (mean + certainty * deviation >= terms.mostNano) return growth;
  return { ...growth, expected: { meanUsd: mean / 1e9, deviationUsd: deviation / 1e9 } };
}

function worstOf(
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
