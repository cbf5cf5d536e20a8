/**
 * R5. Why an instance cannot take a call, or null when it can. The first reason that applies is shown. An open breaker
 * is the last, so that whoever waits for it to close waits for an instance that can then take the call.
 */
import type { Verdict } from '../../contracts/decision.ts';
import { reservedUsd, worstCaseUsd } from './estimate.ts';
import type { InstanceSnapshot, RouteRequest } from './types.ts';
import { isInRange, type RangeAnswers, readRange } from './version-range.ts';

function refuseByState({ state }: InstanceSnapshot): Verdict | null {
  switch (state) {
    case 'up':
    case 'suspect':
      return null;
    case 'deregistered':
      return 'draining';
    case 'down':
    case 'quarantined':
      return state;
  }
}

/**
 * R4, in doubles: they are exact enough to rule out what cannot fit, and whatever slips through by a rounding is refused
 * by the claim, which counts in whole nano-USD in the database.
 */
function refuseByPrice(instance: InstanceSnapshot, request: RouteRequest, costUsd: number): Verdict | null {
  const { ceilingUsd, headroomUsd } = request;
  if (ceilingUsd !== null && costUsd > ceilingUsd) return 'over_ceiling';
  if (ceilingUsd !== null && worstCaseUsd(instance, request) > ceilingUsd) return 'over_ceiling';
  const isOver = headroomUsd !== null && reservedUsd(instance, request, costUsd) > headroomUsd;
  return isOver ? 'over_budget' : null;
}

/** What a route rules out, made ready for many instances; null = nothing. */
export interface RouteFilter {
  readonly range: RangeAnswers | null;
  readonly tags: readonly string[] | null;
}

/** What a request rules out beside. */
export interface Filter extends RouteFilter {
  readonly ruledOut: RouteRequest['ruledOut'] | null;
  readonly hasLimit: boolean;
}

export function createRouteFilter({
  versionRange,
  tags,
}: Pick<RouteRequest, 'versionRange' | 'tags'>): RouteFilter {
  return {
    range: versionRange === null ? null : readRange(versionRange),
    tags: tags.length === 0 ? null : tags,
  };
}

export function createFilter(request: RouteRequest): Filter {
  const { ruledOut, ceilingUsd, headroomUsd } = request;
  return {
    ...createRouteFilter(request),
    ruledOut: ruledOut.size === 0 ? null : ruledOut,
    hasLimit: ceilingUsd !== null || headroomUsd !== null,
  };
}

function hasTags(instance: InstanceSnapshot, tags: readonly string[]): boolean {
  for (const tag of tags) if (!instance.tags.includes(tag)) return false;
  return true;
}

/** Why a route does not lead to an instance, whatever the call and its price are. */
export function excludeByRoute(instance: InstanceSnapshot, { range, tags }: RouteFilter): Verdict | null {
  const byState = refuseByState(instance);
  if (byState !== null) return byState;
  if (range !== null && !isInRange(range, instance.version)) return 'wrong_version';
  return tags !== null && !hasTags(instance, tags) ? 'tag_mismatch' : null;
}

/** @param costUsd what a call is expected to cost there */
export function excludeInstance(
  instance: InstanceSnapshot,
  filter: Filter,
  request: RouteRequest,
  costUsd: number,
): Verdict | null {
  const byRoute = excludeByRoute(instance, filter);
  if (byRoute !== null) return byRoute;
  const { ruledOut, hasLimit } = filter;
  const byCaller = ruledOut?.get(instance.instance_id);
  if (byCaller !== undefined) return byCaller;
  const byPrice = hasLimit && instance.rate_usd > 0 ? refuseByPrice(instance, request, costUsd) : null;
  if (byPrice !== null) return byPrice;
  const { breaker_until_ms } = instance;
  return breaker_until_ms !== null && request.nowMs < breaker_until_ms ? 'breaker_open' : null;
}

/** What its price would need to be no reason against it: a ceiling or a headroom of so much, USD. */
export function neededUsd(
  instance: InstanceSnapshot,
  request: RouteRequest,
  verdict: 'over_ceiling' | 'over_budget',
  costUsd: number,
): number {
  return verdict === 'over_ceiling'
    ? Math.max(costUsd, worstCaseUsd(instance, request))
    : reservedUsd(instance, request, costUsd);
}
