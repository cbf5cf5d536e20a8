/**
 * R5. Why an instance cannot take a call, or null when it can. The first reason that applies is shown. An open breaker
 * is the last, so that a call that waits for it waits for an instance that can then take it.
 *
 * Also checks versions against a range. Parsing both takes longer than the rest of a choice, so results are cached:
 * they depend on nothing else, and a few thousand of them serve every call.
 */
import { Range } from 'semver';
import type { Verdict } from '../contracts/decision.ts';
import { ownMs } from '../residency/residency.ts';
import { expectedCost, longCallMs, reservedUsd, worstCaseUsd } from './estimate.ts';
import { type InstanceSnapshot, maySpeak, type RouteRequest } from './types.ts';

interface RangeAnswers {
  readonly range: string;
  /** Null when it is not a range: then only the identical text matches. */
  readonly parsed: Range | null;
  readonly answers: Map<string, boolean>;
}

const maxRanges = 500;
const maxVersions = 500;
const known = new Map<string, RangeAnswers>();

function parseRange(range: string): Range | null {
  try {
    return new Range(range, { loose: true });
  } catch {
    return null;
  }
}

export function readRange(range: string): RangeAnswers {
  let entry = known.get(range);
  if (entry === undefined) {
    if (known.size >= maxRanges) known.clear();
    entry = { range, parsed: parseRange(range), answers: new Map() };
    known.set(range, entry);
  }
  return entry;
}

export function isInRange({ range, parsed, answers }: RangeAnswers, version: string): boolean {
  let answer = answers.get(version);
  if (answer === undefined) {
    if (answers.size >= maxVersions) answers.clear();
    answer = version === range || parsed?.test(version) === true;
    answers.set(version, answer);
  }
  return answer;
}

function refuseByState({ state }: InstanceSnapshot): Verdict | null {
  switch (state) {
    case 'up':
    case 'warming':
    case 'suspect':
      return null;
    case 'draining':
    case 'deregistered':
      return 'draining';
    case 'down':
    case 'quarantined':
      return state;
  }
}

/**
 * R4, in doubles. They are exact enough to rule out a call that cannot fit. The claim, which counts whole nano-USD in
 * the database, refuses any that passes by a rounding error. A price by the input is reckoned when the instance is
 * vetted, so nothing refuses it before.
 */
function refuseByPrice(instance: InstanceSnapshot, request: RouteRequest, costUsd: number): Verdict | null {
  const { ceilingUsd, headroomUsd } = request;
  if (instance.spec_digest === null && instance.worst_case != null) return null;
  if (ceilingUsd !== null && costUsd > ceilingUsd) return 'over_ceiling';
  if (ceilingUsd !== null && worstCaseUsd(instance, request) > ceilingUsd) return 'over_ceiling';
  const isOver = headroomUsd !== null && reservedUsd(instance, request, costUsd) > headroomUsd;
  return isOver ? 'over_budget' : null;
}

/** The constraints of a route, prepared for many instances; null = none. */
interface RouteFilter {
  readonly range: RangeAnswers | null;
  readonly tags: readonly string[] | null;
}

/** The additional constraints of a request. */
interface Filter extends RouteFilter {
  readonly request: RouteRequest;
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
  const { range, tags } = createRouteFilter(request);
  return {
    request,
    ruledOut: ruledOut.size === 0 ? null : ruledOut,
    hasLimit: ceilingUsd !== null || headroomUsd !== null,
    range,
    tags,
  };
}

function hasTags(instance: InstanceSnapshot, tags: readonly string[]): boolean {
  for (const tag of tags) if (!instance.tags.includes(tag)) return false;
  return true;
}

/** Why a route excludes an instance, for any call and price. */
export function excludeByRoute(instance: InstanceSnapshot, { range, tags }: RouteFilter): Verdict | null {
  const byState = refuseByState(instance);
  if (byState !== null) return byState;
  if (range !== null && !isInRange(range, instance.version)) return 'wrong_version';
  return tags !== null && !hasTags(instance, tags) ? 'tag_mismatch' : null;
}

/** A single call may have been a cold start; two count as learnt, although the count fades. */
const callsToLearn = 1.5;

/**
 * Whether the learnt duration of its calls exceeds the time that is left: of those with the key, once it is known how
 * long a load takes, else of all.
 */
function isTooSlow(
  { instance_id, duration_ms, deviation_ms, success_count }: InstanceSnapshot,
  { leftMs = null, residency }: RouteRequest,
): boolean {
  if (leftMs === null) return false;
  const found = residency?.get(instance_id);
  if (found?.isLearnt === true && found.loadMs > 0) return ownMs(found) > leftMs;
  if (duration_ms === null || success_count < callsToLearn) return false;
  return longCallMs(duration_ms, deviation_ms) > leftMs;
}

/** @param costUsd expected cost of a call there */
export function excludeInstance(instance: InstanceSnapshot, filter: Filter, costUsd: number): Verdict | null {
  const byRoute = excludeByRoute(instance, filter);
  if (byRoute !== null) return byRoute;
  const { request, ruledOut, hasLimit } = filter;
  if (request.mayReceive?.(instance) === false) return 'secret_not_allowed';
  if (request.protocol?.isRequired === true && !maySpeak(instance, request.protocol.name))
    return 'other_protocol';
  const byCaller = ruledOut?.get(instance.instance_id);
  if (byCaller !== undefined) return byCaller;
  if (isTooSlow(instance, request)) return 'no_time';
  const byPrice = hasLimit && instance.rate_usd > 0 ? refuseByPrice(instance, request, costUsd) : null;
  if (byPrice !== null) return byPrice;
  const { breaker_until_ms } = instance;
  return breaker_until_ms !== null && request.nowMs < breaker_until_ms ? 'breaker_open' : null;
}

/** The ceiling or headroom that the instance's price would need, USD. */
export function neededUsd(
  instance: InstanceSnapshot,
  request: RouteRequest,
  verdict: 'over_ceiling' | 'over_budget',
): number {
  const costUsd = expectedCost(instance, request);
  return verdict === 'over_ceiling'
    ? Math.max(costUsd, worstCaseUsd(instance, request))
    : reservedUsd(instance, request, costUsd);
}
